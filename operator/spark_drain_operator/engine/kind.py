"""What the engine has to know of a kind of objects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from spark_drain_operator.engine.events import Event
from spark_drain_operator.engine.outcome import Outcome
from spark_drain_operator.engine.status import BasePhase, Ending, Status
from spark_drain_operator.storage.own_objects import Resource

__all__ = ["InvalidSpecError", "Kind", "Spec"]


class InvalidSpecError(ValueError):
    """A spec that the schema should have refused: an older CustomResourceDefinition is installed."""


class Spec(Protocol):
    """What the engine reads of a spec."""

    @property
    def ttl(self) -> int | None:
        """Seconds that a finished object lives; None keeps it."""


SpecT = TypeVar("SpecT", bound=Spec)
StatusT = TypeVar("StatusT", bound=Status)
PassT = TypeVar("PassT")


class Kind(ABC, Generic[SpecT, StatusT, PassT]):
    """One kind of objects that the operator brings forward.

    Parameters
    ----------
    resource
        Where its objects are.
    rejected
        The phase in which an object ends whose spec cannot be read.
    reads_watches
        Whether its steps know which decisions must not rest on what the watches have told (`StaleReadsError`); else each pass asks.
    """

    resource: Resource
    rejected: BasePhase
    reads_watches: bool = False

    @abstractmethod
    def parse(self, spec: Mapping[str, Any]) -> SpecT:
        """Read the spec of an object; raises `InvalidSpecError`."""

    @abstractmethod
    def read_status(self, body: Mapping[str, Any], now: datetime) -> StatusT:
        """Read the status of an object; a new object has an empty one."""

    @abstractmethod
    def inadmissible(self, spec: SpecT) -> Ending | None:
        """Return the ending of an object that this operator does not serve, before anything is read or written for it.

        Not asked any more of one that was begun: an operator with other settings completes it.
        """

    @abstractmethod
    def overdue(self, body: Mapping[str, Any], spec: SpecT, status: StatusT) -> Ending | None:
        """Return how an object ends whose passes keep failing, where it has waited long enough; raises nothing."""

    @abstractmethod
    def observe(self, body: dict[str, Any], spec: SpecT, status: StatusT) -> PassT:
        """Read what one pass needs, and note in the status what was seen."""

    @abstractmethod
    def steps(self, current: PassT) -> Iterable[Callable[[PassT], Outcome]]:
        """Return what is to be done, in order: deadlines and deletion first; the last step answers with the ending."""

    @abstractmethod
    def was_begun(self, status: StatusT) -> bool:
        """Whether the status says that something was written for the object."""

    @abstractmethod
    def begun(self, current: PassT) -> bool:
        """Whether there is something to be removed when the object ends (`forget`)."""

    @abstractmethod
    def stored(self, current: PassT, body: dict[str, Any]) -> None:
        """Take note of the object as it is after its status was stored in the middle of a pass."""

    @abstractmethod
    def settled(self, current: PassT, ending: Ending) -> bool:
        """Whether the stored status leads to this ending again, also when what was written for the object has been removed."""

    @abstractmethod
    def mark(self, current: PassT, message: str, *, ends: bool) -> None:
        """Set the phase of an active object and the conditions that only this kind has; ``ends`` with the end decided."""

    @abstractmethod
    def seconds_to_limit(self, current: PassT) -> float | None:
        """Return after how many seconds a deadline passes at which the steps have to be gone through again, or None."""

    @abstractmethod
    def forget(self, body: Mapping[str, Any]) -> None:
        """Remove what the operator has written for the object, also where its spec cannot be read; may be called again."""

    @abstractmethod
    def conclude(self, status: StatusT, ending: Ending) -> None:
        """Make those conditions final that only this kind has."""

    @abstractmethod
    def events(self, before: StatusT, after: StatusT) -> list[Event]:
        """Return the Events of one pass, in order; see `spark_drain_operator.engine.events.events_of`."""
