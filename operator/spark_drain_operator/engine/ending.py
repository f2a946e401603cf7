"""The end of an object: conditions final, object deleted after its time."""

from __future__ import annotations

from datetime import datetime

from spark_drain_operator.clock import later
from spark_drain_operator.engine.conditions import FINISHED, RECONCILING, STALLED, SUCCEEDED
from spark_drain_operator.engine.status import Ending, Status

__all__ = ["conclude", "seconds_to_live"]


def conclude(status: Status, ending: Ending) -> None:
    """Make every condition final that all kinds have."""
    phase, reason, message = ending.phase, str(ending.reason), ending.message
    status.phase, status.message, status.outcome = phase, message, None
    status.completion_time = status.now
    status.set(SUCCEEDED, "True" if phase.successful else "False", reason, message)
    status.set(FINISHED, "True", phase, message)
    status.set(RECONCILING, "False", phase, "")
    status.set(STALLED, "False" if phase.successful else "True", reason, "" if phase.successful else message)


def seconds_to_live(ttl: int | None, completion: datetime | None, now: datetime) -> float | None:
    """Return after how many seconds the finished object is to be deleted; None is never."""
    if ttl is None or completion is None:
        return None
    return max(0.0, (later(completion, ttl) - now).total_seconds())
