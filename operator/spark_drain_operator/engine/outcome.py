"""What a step answers."""

from __future__ import annotations

from dataclasses import dataclass

from spark_drain_operator.engine.status import BasePhase, Ending

__all__ = ["DONE", "Done", "Ended", "Noted", "Outcome", "StaleReadsError", "Waiting", "ended"]


class StaleReadsError(Exception):
    """What is to be done next must not rest on what the watches have told: the pass begins anew and asks for everything."""


@dataclass(frozen=True)
class Done:
    """Nothing is left of this step: go on with the next."""


@dataclass(frozen=True)
class Waiting:
    """Something else has to happen first.

    Parameters
    ----------
    seconds
        Look again after this time at the latest.
    message
        What is waited for.
    unhurried
        The status is not stored within so many seconds after the object was written last: more is to come soon.
    """

    seconds: float
    message: str
    unhurried: float = 0.0


@dataclass(frozen=True)
class Noted:
    """The status is stored before anything else is done: the steps are gone through once more in the same pass, with what was read for it.

    Parameters
    ----------
    message
        What comes next.
    """

    message: str


@dataclass(frozen=True)
class Ended:
    """The object ends here, well or badly."""

    ending: Ending


Outcome = Done | Waiting | Noted | Ended

DONE = Done()


def ended(phase: BasePhase, reason: str, message: str) -> Ended:
    """Return the outcome that ends an object."""
    return Ended(Ending(phase, str(reason), message))
