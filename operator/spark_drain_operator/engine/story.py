"""Which changes of the status are told as Events."""

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

__all__ = ["Told", "story"]


class Told(NamedTuple):
    """One Event: type, reason, message."""

    type: str
    reason: str
    message: str


_QUIET_REASONS = frozenset({NOT_YET, IN_PROGRESS, NOT_STALLED})
_SILENT_TYPES = frozenset({SUCCEEDED, RECONCILING})


def _told(condition: Condition, after: Status, warnings: Container[str]) -> Told | None:
    if condition.type in _SILENT_TYPES or condition.reason in _QUIET_REASONS:
        return None
    if condition.type == FINISHED:
        return Told("Normal" if after.phase.successful else "Warning", condition.reason, condition.message)
    if condition.type == STALLED and condition.status != "True":
        return None
    kind = "Warning" if condition.reason in warnings else "Normal"
    reason = condition.type if condition.status == "True" and condition.type != STALLED else condition.reason
    return Told(kind, str(reason), condition.message)


def story(before: Status, after: Status, warnings: Container[str]) -> list[Told]:
    """Return the Events that the conditions of one pass are worth, in order.

    Parameters
    ----------
    before, after
        The status as it was read, and as it is written.
    warnings
        Reasons that are told as a Warning.
    """
    told: list[Told] = []
    for condition in after.conditions.changed_since(before.conditions):
        # The end is told once, by Finished, not again by the conditions that it settles.
        if after.finished and condition.type in (ACCEPTED, STALLED):
            continue
        event = _told(condition, after, warnings)
        if event is not None and event not in told:
            told.append(event)
    return told
