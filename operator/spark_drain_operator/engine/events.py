"""Which changes of the status make Events."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from spark_drain_operator.engine.conditions import (
    ACCEPTED,
    FINISHED,
    IN_PROGRESS,
    NOT_STALLED,
    NOT_YET,
    RECONCILING,
    STALLED,
    SUCCEEDED,
    Condition,
)
from spark_drain_operator.engine.status import Status

__all__ = ["Event", "events_of"]


class Event(NamedTuple):
    """One Event: type, reason, message."""

    type: str
    reason: str
    message: str


_QUIET_REASONS = frozenset({NOT_YET, IN_PROGRESS, NOT_STALLED})
_SILENT_TYPES = frozenset({SUCCEEDED, RECONCILING})


def _event_of(condition: Condition, after: Status, warnings: Container[str]) -> Event | None:
    if condition.type in _SILENT_TYPES or condition.reason in _QUIET_REASONS:
        return None
    if condition.type == FINISHED:
        return Event("Normal" if after.phase.successful else "Warning", condition.reason, condition.message)
    if condition.type == STALLED and condition.status != "True":
        return None
    kind = "Warning" if condition.type == STALLED or condition.reason in warnings else "Normal"
    reason = condition.type if condition.status == "True" and condition.type != STALLED else condition.reason
    return Event(kind, str(reason), condition.message)


def events_of(before: Status, after: Status, warnings: Container[str]) -> list[Event]:
    """Return the Events that the conditions of one pass are worth, in order.

    Parameters
    ----------
    before, after
        The status as it was read, and as it is written.
    warnings
        Reasons of Warnings; whatever is Stalled makes one.
    """
    found: list[Event] = []
    for condition in after.conditions.changed_since(before.conditions):
        # The end makes one Event, by Finished, not again by the conditions that it settles.
        if after.finished and condition.type in (ACCEPTED, STALLED):
            continue
        event = _event_of(condition, after, warnings)
        if event is not None and event not in found:
            found.append(event)
    return found
