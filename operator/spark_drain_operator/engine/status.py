"""What the status of every kind has: read, changed during a pass, written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from spark_drain_operator.clock import format_time, read_time
from spark_drain_operator.engine.conditions import FINISHED, MAX_MESSAGE, Condition, Conditions, clean_reason

__all__ = ["BasePhase", "Ending", "Status", "known"]


class BasePhase(StrEnum):
    """One word for people; each kind lists its own. The terminal ones are also reasons of the condition Finished."""

    @property
    @abstractmethod
    def successful(self) -> bool:
        """Whether the object has ended as it was asked to."""


@dataclass(frozen=True)
class Ending:
    """How an object ends, or would end when everybody agrees.

    Parameters
    ----------
    phase
        A terminal phase.
    reason, message
        Why: for programs, for people.
    """

    phase: BasePhase
    reason: str
    message: str

    def as_object(self) -> dict[str, Any]:
        """Return the form of the API."""
        return {"phase": str(self.phase), "reason": clean_reason(self.reason), "message": self.message[:MAX_MESSAGE]}

    @classmethod
    def from_object(cls, fields: Mapping[str, Any] | None, phases: type[BasePhase]) -> Ending | None:
        """Read the form of the API; None also where somebody has written what no ending is."""
        try:
            return Ending(phases(fields["phase"]), fields["reason"], fields["message"]) if fields else None
        except (KeyError, ValueError):
            return None


@dataclass(kw_only=True)
class Status(ABC):
    """What the operator knows and has decided; everything that must survive its own restart.

    Parameters
    ----------
    generation
        Of the object that is being reconciled; becomes ``observedGeneration``.
    now
        Time of this pass.
    phase, message
        For people.
    conditions
        Of the types of this kind.
    outcome
        The end that is decided and not yet carried out.
    completion_time
        When the object ended.
    """

    generation: int
    now: datetime
    phase: BasePhase
    message: str = ""
    conditions: Conditions
    outcome: Ending | None = None
    completion_time: datetime | None = None

    def set(self, type_: str, status: str, reason: str, message: str = "") -> None:
        """Set a condition at the time of this pass."""
        self.conditions.set(type_, status, reason, message, time=self.now, generation=self.generation)

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen to this object."""
        return self.conditions.is_true(FINISHED)

    @abstractmethod
    def as_object(self) -> dict[str, Any]:
        """Return the form of the API, without what is not known."""

    @staticmethod
    def common(body: Mapping[str, Any], now: datetime, phases: type[BasePhase], types: Sequence[str]) -> dict[str, Any]:
        """Return the fields of every kind of status, read from an object.

        Parameters
        ----------
        body
            The object; a new one has no status.
        now
            Time of the pass.
        phases
            Those of the kind, the first one that of a new object; one of a later version counts as that.
        types
            Conditions of the kind.
        """
        status = body.get("status") or {}
        first = next(iter(phases))
        return {
            "generation": body["metadata"].get("generation", 0),
            "now": now,
            "phase": phases(status["phase"]) if status.get("phase") in list(phases) else first,
            "message": status.get("message", ""),
            "conditions": Conditions(types, (Condition.from_object(item, now) for item in status.get("conditions") or [])),
            "outcome": Ending.from_object(status.get("outcome"), phases),
            "completion_time": read_time(status.get("completionTime")),
        }

    def common_object(self) -> dict[str, Any]:
        """Return the same fields in the form of the API."""
        return {
            "observedGeneration": self.generation,
            "phase": str(self.phase),
            "message": self.message[:MAX_MESSAGE],
            "conditions": [condition.as_object() for condition in self.conditions],
            "outcome": self.outcome and self.outcome.as_object(),
            **known(completionTime=self.completion_time),
        }


def known(**fields: Any) -> dict[str, Any]:
    """Return the fields that are known, times in the form of the API."""
    return {name: format_time(value) if isinstance(value, datetime) else value for name, value in fields.items() if value}
