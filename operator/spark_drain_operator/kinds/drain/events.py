"""Which changes of a drain's status make Events."""

from __future__ import annotations

from spark_drain_operator.engine.events import Event
from spark_drain_operator.engine.events import events_of as events_of_conditions
from spark_drain_operator.kinds.drain.reasons import Reason
from spark_drain_operator.kinds.drain.status import DrainStatus

__all__ = ["events_of"]

_WARNINGS = frozenset(
    {
        Reason.EXECUTORS_UNACCOUNTED,
        Reason.DRIVER_UNCONFIRMED,
        Reason.FLUSH_STALLED,
        Reason.MALFORMED_REPORT,
        Reason.RESULT_NAME_TAKEN,
        Reason.APPLICATION_NOT_FOUND,
        Reason.APPLICATION_UNREADABLE,
        Reason.RECONCILE_FAILED,
        Reason.AGENT_NOT_RESPONDING,
    }
)


def events_of(before: DrainStatus, after: DrainStatus) -> list[Event]:
    """Return the Events of one pass, in order."""
    found = events_of_conditions(before, after, _WARNINGS)
    asked, asks = before.withdrawal, after.withdrawal
    if asks is not None and (asked is None or asked.reason != asks.reason):
        too_late = asks.reason == Reason.WITHDRAWAL_TOO_LATE
        found.append(Event("Warning" if too_late else "Normal", asks.reason if too_late else "Withdrawing", asks.message))
    return found
