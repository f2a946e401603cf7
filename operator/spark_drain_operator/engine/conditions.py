"""Conditions of the status, as Kubernetes' API conventions want them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from spark_drain_operator.clock import format_time, read_time

__all__ = [
    "ACCEPTED",
    "FINISHED",
    "INVALID_SPEC",
    "IN_PROGRESS",
    "MAX_MESSAGE",
    "NOT_STALLED",
    "NOT_YET",
    "RECONCILE_FAILED",
    "RECONCILING",
    "RESTORED",
    "STALLED",
    "SUCCEEDED",
    "Condition",
    "Conditions",
]

# Types that every kind has.
ACCEPTED: Final = "Accepted"
SUCCEEDED: Final = "Succeeded"
FINISHED: Final = "Finished"
RECONCILING: Final = "Reconciling"
STALLED: Final = "Stalled"

# Reasons that every kind has.
INVALID_SPEC: Final = "InvalidSpec"
IN_PROGRESS: Final = "InProgress"
NOT_YET: Final = "NotYet"
NOT_STALLED: Final = "NotStalled"
RECONCILE_FAILED: Final = "ReconcileFailed"
RESTORED: Final = "Restored"

MAX_MESSAGE: Final = 4096
_NOT_A_REASON = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True)
class Condition:
    """One condition.

    Parameters
    ----------
    type
        What is stated.
    status
        ``True``, ``False`` or ``Unknown``.
    reason, message
        Why: for programs, for people.
    last_transition_time
        When ``status`` changed last.
    observed_generation
        Of the spec that the condition was found for.
    """

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime
    observed_generation: int = 0

    def as_object(self) -> dict[str, Any]:
        """Return the form of the API."""
        return {
            "type": str(self.type),
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": format_time(self.last_transition_time),
            "observedGeneration": self.observed_generation,
        }

    @classmethod
    def from_object(cls, fields: Mapping[str, Any], now: datetime) -> Condition:
        """Read the form of the API; a time that cannot be read is taken for now."""
        return cls(
            fields["type"],
            fields["status"],
            fields["reason"],
            fields["message"],
            read_time(fields["lastTransitionTime"]) or now,
            fields.get("observedGeneration", 0),
        )


def clean_reason(reason: str) -> str:
    """Return a reason that the schema takes: one of an agent may be of a newer version, or of nobody's, and would block every status."""
    return _NOT_A_REASON.sub("", str(reason)).lstrip("0123456789_")[:253] or "Unspecified"


class Conditions:
    """All conditions of one object, by type.

    Parameters
    ----------
    types
        In the order in which they are shown; one that is not among them is dropped.
    conditions
        As read from the status.
    """

    def __init__(self, types: Sequence[str], conditions: Iterable[Condition] = ()) -> None:
        self._types = types
        self._by_type = {condition.type: condition for condition in conditions}

    def get(self, type_: str) -> Condition | None:
        """Return a condition, or None before it was first set."""
        return self._by_type.get(type_)

    def is_true(self, type_: str) -> bool:
        """Whether a condition holds."""
        condition = self._by_type.get(type_)
        return condition is not None and condition.status == "True"

    def set(self, type_: str, status: str, reason: str, message: str, *, time: datetime, generation: int) -> None:
        """Set a condition; its time changes only with its status."""
        before = self._by_type.get(type_)
        after = Condition(type_, status, clean_reason(reason), message[:MAX_MESSAGE], time, generation)
        if before is not None and before.status == status:
            after = replace(after, last_transition_time=before.last_transition_time)
        self._by_type[type_] = after

    def __iter__(self) -> Iterator[Condition]:
        """Iterate in the order of the types."""
        return (self._by_type[type_] for type_ in self._types if type_ in self._by_type)

    def changed_since(self, earlier: Conditions) -> list[Condition]:
        """Return the conditions whose status or reason differs."""
        return [
            condition
            for condition in self
            if (before := earlier.get(condition.type)) is None or (before.status, before.reason) != (condition.status, condition.reason)
        ]
