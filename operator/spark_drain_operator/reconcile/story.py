"""Which changes of the status are told as Events."""

from __future__ import annotations

from typing import NamedTuple

from spark_drain_operator.models.conditions import Condition
from spark_drain_operator.models.reasons import ConditionType, Phase, Reason
from spark_drain_operator.models.status import DrainStatus

__all__ = ["Told", "story"]


class Told(NamedTuple):
    """One Event: type, reason, message."""

    type: str
    reason: str
    message: str


_QUIET_REASONS = frozenset({Reason.NOT_YET, Reason.IN_PROGRESS, Reason.NOT_STALLED})
_SILENT_TYPES = frozenset({ConditionType.SUCCEEDED, ConditionType.RECONCILING})
_WARNINGS = frozenset(
    {
        Reason.EXECUTORS_UNACCOUNTED,
        Reason.DRIVER_UNCONFIRMED,
        Reason.FLUSH_STALLED,
        Reason.MALFORMED_REPORT,
        Reason.RESULT_NAME_TAKEN,
        Reason.APPLICATION_NOT_FOUND,
    }
)


def _told(condition: Condition) -> Told | None:
    if condition.type in _SILENT_TYPES or condition.reason in _QUIET_REASONS:
        return None
    if condition.type is ConditionType.FINISHED:
        kind = "Normal" if Phase(condition.reason).successful else "Warning"
        return Told(kind, condition.reason, condition.message)
    if condition.type is ConditionType.STALLED and condition.status != "True":
        return None
    kind = "Warning" if condition.reason in _WARNINGS else "Normal"
    reason = str(condition.type) if condition.status == "True" and condition.type is not ConditionType.STALLED else condition.reason
    return Told(kind, reason, condition.message)


def story(before: DrainStatus, after: DrainStatus) -> list[Told]:
    """Return the Events of one pass, in order."""
    ending = after.conditions.is_true(ConditionType.FINISHED)
    told = []
    for condition in after.conditions.changed_since(before.conditions):
        # The end is told once, by Finished, not again by the conditions that it settles.
        if ending and condition.type in (ConditionType.ACCEPTED, ConditionType.STALLED):
            continue
        event = _told(condition)
        if event is not None and event not in told:
            told.append(event)
    asked, asks = before.withdrawal, after.withdrawal
    if asks is not None and (asked is None or asked.reason != asks.reason):
        too_late = asks.reason == Reason.WITHDRAWAL_TOO_LATE
        told.append(Told("Warning" if too_late else "Normal", asks.reason if too_late else "Withdrawing", asks.message))
    return told
