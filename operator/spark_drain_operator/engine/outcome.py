"""What a step answers."""

from __future__ import annotations

from dataclasses import dataclass

from spark_drain_operator.engine.status import BasePhase, Ending

__all__ = ["DONE", "Done", "Ended", "Outcome", "Waiting", "ended"]


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
    """

    seconds: float
    message: str


@dataclass(frozen=True)
class Ended:
    """The object ends here, well or badly."""

    ending: Ending


Outcome = Done | Waiting | Ended

DONE = Done()


def ended(phase: BasePhase, reason: str, message: str) -> Ended:
    """Return the outcome that ends an object."""
    return Ended(Ending(phase, str(reason), message))
