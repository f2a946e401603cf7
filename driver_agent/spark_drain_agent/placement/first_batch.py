"""What the first batch costs after an executor was replaced: its part of the state is read from the checkpoint again."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.spark_internals.batches import batches_since, is_batch_under_way, recent_batches
from spark_drain_agent.spark_internals.errors import JavaError

__all__ = ["Cost", "FirstBatch"]

_LEAST, _MOST = 3, 5
"""As many batches tell how long an ordinary one takes: the very first ones are slower."""


@dataclass(frozen=True)
class Cost:
    """The first batch of a query after the replacement.

    Parameters
    ----------
    query
        Its name, or its id where it has none.
    milliseconds, ordinary
        How long it took, and how long a batch took before.
    """

    query: str
    milliseconds: int
    ordinary: int


class FirstBatch:
    """The batches of the queries with state that run.

    Parameters
    ----------
    queries
        Returns the queries.
    """

    def __init__(self, queries: Callable[[], Iterable[StreamingQuery]]) -> None:
        self._before: list[tuple[StreamingQuery, int]] = []
        with suppress(*JavaError):  # what was replaced is replaced, whether its cost is known or not
            for query in queries():
                recent = [batch.milliseconds for batch in recent_batches(query)[-_MOST:]]
                if len(recent) >= _LEAST:
                    self._before.append((query, round(statistics.median(recent))))

    def slowest(self, since: datetime) -> Cost | None:
        """Return the longest one of all queries of those that began at that time or later, None where none has ended."""
        costs: list[Cost] = []
        with suppress(*JavaError):
            for query, ordinary in self._before:
                batches = batches_since(query, since)
                costs += [Cost(str(query.name or query.id), batch.milliseconds, ordinary) for batch in batches[:1]]
        return max(costs, key=lambda cost: cost.milliseconds, default=None)

    def is_expected(self, since: datetime) -> bool:
        """Return whether a query is about to end such a batch; one that finds no input may not begin one for hours."""
        with suppress(*JavaError):
            return any(query.isActive and not batches_since(query, since) and is_batch_under_way(query) for query, _ in self._before)
        return False
