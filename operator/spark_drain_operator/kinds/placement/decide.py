"""How a placement ends: pure functions (table-tested)."""

from __future__ import annotations

from datetime import datetime

from spark_drain_store.placement_messages import PlacementResponse, PlacementStatus

from spark_drain_operator.clock import later
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.placement.reasons import Phase, Reason

__all__ = ["STOP_SECONDS", "answered", "decommission_at", "give_up_at", "phase_of", "replaced_before_the_end"]

STOP_SECONDS = 300
"""How long the agent may take to end the old executor once the new one is there."""

_PHASES = {
    PlacementStatus.CREATED: Phase.PENDING,
    PlacementStatus.ACCEPTED: Phase.QUEUED,
    PlacementStatus.IN_PROGRESS: Phase.MOVING,
}


def phase_of(response: PlacementResponse | None) -> Phase | None:
    """Return the phase of an active placement, None where the agent's answer ends it."""
    return Phase.PENDING if response is None else _PHASES.get(response.status)


def answered(response: PlacementResponse | None, wish: str) -> Ending | None:
    """Return how the agent's answer ends a placement, None where it does not.

    Parameters
    ----------
    response
        The answer.
    wish
        Why it is no longer wanted, or "": an answer that nothing was replaced is what was asked for then.
    """
    if response is None or not response.status.finished:
        return None
    if response.status is PlacementStatus.SUCCEEDED:
        return Ending(Phase.SUCCEEDED, Phase.SUCCEEDED, response.message)
    if response.decommissioned:
        return Ending(Phase.FAILED, Reason.DECOMMISSIONED, response.message)
    if wish:
        return Ending(Phase.CANCELLED, wish, response.message)
    if response.status is PlacementStatus.BAD_REQUEST:
        return Ending(Phase.REJECTED, Reason.BAD_REQUEST, response.message)
    return Ending(Phase.FAILED, Reason.NOT_REPLACED, response.message)


def replaced_before_the_end(response: PlacementResponse | None) -> Ending | None:
    """Return how a placement ends whose run has ended, or says no more, after it had replaced the executor; None where it had not."""
    if response is None or not response.replaced:
        return None
    return Ending(Phase.SUCCEEDED, Phase.SUCCEEDED, f"{response.message}; run {response.run_id} has not said how long that one took")


def decommission_at(created: datetime, after: int | None) -> datetime | None:
    """Return when the executor is ended even without a new one, None where it never is."""
    return None if after is None else later(created, after)


def give_up_at(withdrawn: datetime, acknowledge_timeout: int, response: PlacementResponse | None) -> datetime:
    """Return until when the answer to a withdrawal is waited for; where the new executor is there, the old one is ended first."""
    return later(withdrawn, acknowledge_timeout + (STOP_SECONDS if response is not None and response.node else 0))
