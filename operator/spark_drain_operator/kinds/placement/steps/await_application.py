"""Step: the application cannot be read, so nothing can be said about its executors; the agent's answer still counts."""

from __future__ import annotations

from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting
from spark_drain_operator.kinds.placement.observation import PlacementPass
from spark_drain_operator.kinds.placement.reasons import ConditionType, Reason, message_of

__all__ = ["run"]


def run(placement: PlacementPass) -> Outcome:
    """Wait until it can be read again."""
    response, ref = placement.response, placement.spec.application
    if not placement.unreadable or (response is not None and response.status.finished):
        return DONE
    message = message_of(Reason.APPLICATION_UNREADABLE, kind=ref.kind, name=ref.name, error=placement.unreadable, what="placement")
    placement.status.set(ConditionType.STALLED, "True", Reason.APPLICATION_UNREADABLE, message)
    return Waiting(placement.settings.resync_seconds, message)
