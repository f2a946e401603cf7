"""How long the batches of a running query take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_store.codec import parse_time

__all__ = ["Batch", "batches_since", "is_batch_under_way", "recent_batches"]


@dataclass(frozen=True)
class Batch:
    """A batch with state that has ended.

    Parameters
    ----------
    started
        When it began, by the driver's clock.
    milliseconds
        How long it took.
    """

    started: datetime
    milliseconds: int


def recent_batches(query: StreamingQuery) -> list[Batch]:
    """Return the last batches with input and state, oldest first, as many as Spark keeps (spark.sql.streaming.numRecentProgressUpdates)."""
    return [_batch(progress) for progress in query.recentProgress if progress["numInputRows"] and progress["stateOperators"]]


def batches_since(query: StreamingQuery, time: datetime) -> list[Batch]:
    """Return those that began at a time, or later."""
    last = query.lastProgress
    if last is None or _batch(last).started < time:
        return []
    return [batch for batch in recent_batches(query) if batch.started >= time]


def is_batch_under_way(query: StreamingQuery) -> bool:
    """Return whether the query looks for input, or works on a batch."""
    return bool(query.status["isTriggerActive"])


def _batch(progress: Any) -> Batch:
    return Batch(parse_time(progress["timestamp"]), int(progress["durationMs"].get("triggerExecution", 0)))
