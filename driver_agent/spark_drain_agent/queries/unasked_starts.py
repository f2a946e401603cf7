"""Queries that started before the metadata store had said for the first time whether a drain is asked for."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from spark_drain_agent.queries.tracked import TrackedQuery

__all__ = ["QueryStart", "UnaskedStarts"]


@dataclass(frozen=True)
class QueryStart:
    """What is kept of a query that starts.

    Parameters
    ----------
    location
        Its checkpoint; None for a temporary one.
    query_name
        "" where it has none.
    label
        How messages call it.
    """

    location: str | None
    query_name: str
    label: str

    @classmethod
    def of(cls, tracked: TrackedQuery) -> QueryStart:
        """Return the start of a query."""
        return cls(tracked.location, tracked.captured.query_name, tracked.label)


class UnaskedStarts:
    """Counts starts, since a query may be started again while it runs, which Spark refuses."""

    def __init__(self) -> None:
        self._counts: Counter[QueryStart] = Counter()
        self._lock = threading.RLock()  # a signal handler may start a query in the middle of it

    def add(self, start: QueryStart) -> None:
        """Note a query that is about to start."""
        with self._lock:
            self._counts[start] += 1

    def take_back(self, start: QueryStart) -> None:
        """Forget a start that Spark has refused."""
        with self._lock:
            self._counts[start] -= 1

    def all(self) -> tuple[QueryStart, ...]:
        """Return those that started, or may have."""
        with self._lock:
            return tuple(+self._counts)
