"""kstatus' conditions of an object that has not ended."""

from __future__ import annotations

from spark_drain_operator.engine.conditions import FINISHED, IN_PROGRESS, NOT_YET, RECONCILING, STALLED, SUCCEEDED
from spark_drain_operator.engine.status import Status

__all__ = ["mark_active"]

_SUMMARIES = frozenset({SUCCEEDED, FINISHED, RECONCILING, STALLED})


def mark_active(status: Status, message: str) -> None:
    """Set what every active object has, of whatever kind."""
    status.message = message
    status.set(SUCCEEDED, "Unknown", _why_not_yet(status) or status.phase, message)
    status.set(FINISHED, "False", IN_PROGRESS, "")
    status.set(RECONCILING, "True", status.phase, message)


def _why_not_yet(status: Status) -> str:
    """Return what holds the object up, where that says more than its phase."""
    if status.conditions.is_true(STALLED):
        stalled = status.conditions.get(STALLED)
        return stalled.reason if stalled else ""
    for condition in status.conditions:
        if condition.status != "True" and condition.type not in _SUMMARIES:
            return "" if condition.reason in (NOT_YET, IN_PROGRESS) else condition.reason
    return ""
