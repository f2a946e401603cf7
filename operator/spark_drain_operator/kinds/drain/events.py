"""Which changes of a drain's status make Events."""

from __future__ import annotations

from spark_drain_operator.engine.events import Event
from spark_drain_operator.engine.events import events_of as events_of_conditions
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason
from spark_drain_operator.kinds.drain.status import DrainStatus

__all__ = ["events_of"]

_WARNINGS = frozenset(
    {
        Reason.EXECUTORS_UNACCOUNTED,
        Reason.DRIVER_UNCONFIRMED,
        Reason.MALFORMED_REPORT,
        Reason.RESULT_NAME_TAKEN,
        Reason.RESULT_NOT_KEPT,
        Reason.APPLICATION_NOT_FOUND,
        Reason.APPLICATION_UNREADABLE,
        Reason.RECONCILE_FAILED,
        Reason.AGENT_NOT_RESPONDING,
    }
)

_IN_CONDITIONS_ONLY = frozenset(
    {
        ConditionType.ACCEPTED,
        Reason.WAITING_FOR_AGENT,
        ConditionType.SOURCES_STOPPED,
        ConditionType.EXECUTORS_DRAINED,
        Reason.SCALE_DOWN_REQUESTED,
        Reason.WAITING_FOR_PODS,
        ConditionType.SCALED_DOWN,
        Reason.FLUSH_STALLED,
    }
)
"""What goes well and is soon followed by an Event that includes it, and what Stalled tells with its cause."""


def _together(events: list[Event]) -> list[Event]:
    """Return what went well in one pass as one Event, in the place and with the reason of the last."""
    normal = [event for event in events if event.type == "Normal"]
    if len(normal) < 2:
        return events
    told = Event("Normal", normal[-1].reason, "; ".join(event.message for event in normal))
    return [told if event is normal[-1] else event for event in events if event.type != "Normal" or event is normal[-1]]


def _complete(status: DrainStatus) -> bool:
    return status.conditions.is_true(ConditionType.EXECUTORS_DRAINED)


def events_of(before: DrainStatus, after: DrainStatus) -> list[Event]:
    """Return the Events of one pass, in order: each is a request, so the conditions have what people ask for less."""
    found = [
        event
        for event in events_of_conditions(before, after, _WARNINGS)
        if event.type != "Normal" or event.reason not in _IN_CONDITIONS_ONLY
    ]
    if _complete(after) and not _complete(before):
        found = [event for event in found if event.type != "Normal"]  # the end follows, and says it again
    asked, asks = before.withdrawal, after.withdrawal
    if asks is not None and (asked is None or asked.reason != asks.reason):
        too_late = asks.reason == Reason.WITHDRAWAL_TOO_LATE
        found.append(Event("Warning" if too_late else "Normal", asks.reason if too_late else "Withdrawing", asks.message))
    return _together(found)
