"""How far a Delta or an Iceberg table goes that a query reads, and whether the query has read as far."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from spark_drain_agent.spark_internals.reflection import private_field

__all__ = ["TableGoal", "has_end", "table_goal"]

_DELTA = "org.apache.spark.sql.delta.sources.DeltaSource"
_ICEBERG = "org.apache.iceberg.spark.source.SparkMicroBatchStream"

Position = tuple[int, ...]


class TableGoal:
    """An offset of a table that is to be read up to.

    Parameters
    ----------
    latest
        Where the table ends; None where it has nothing yet.
    position
        Makes offsets comparable.
    """

    def __init__(self, latest: str | None, position: Callable[[str], Position]) -> None:
        self._latest = None if latest is None else position(latest)
        self._position = position

    def reached(self, planned: str | None, committed: str | None) -> bool:  # noqa: ARG002  # the protocol's
        """Return whether a query with this offset of its newest committed batch has read as far."""
        return self._latest is None or (committed is not None and self._position(committed) >= self._latest)


def has_end(source: Any) -> bool:
    """Return whether a source is a table that can say how far it goes.

    Iceberg's asynchronous planner cannot be asked: it would take what it finds into the query's next batches.
    """
    kind = str(source.getClass().getName())
    if kind != _ICEBERG:
        return kind == _DELTA
    settings = private_field(source, "readConf")
    return settings is None or not settings.asyncMicroBatchPlanningEnabled()


def table_goal(jvm: Any, source: Any, planned: str | None) -> TableGoal:
    """Return how far a table goes now; call it under the query's lock.

    Parameters
    ----------
    jvm
        Spark's.
    source
        A source that `has_end`.
    planned
        Its offset in the query's newest batch, None before the first.
    """
    if str(source.getClass().getName()) == _DELTA:
        start = None if planned is None else jvm.org.apache.spark.sql.delta.sources.DeltaSourceOffset.apply(_delta_table(planned), planned)
        position = _delta_position
    else:
        start = source.initialOffset() if planned is None else source.deserializeOffset(planned)
        table = private_field(source, "table")

        def position(offset: str) -> Position:
            return _iceberg_position(table, offset)

    latest = source.latestOffset(start, jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.allAvailable())
    return TableGoal(planned if latest is None else str(latest.json()), position)


def _delta_table(offset: str) -> str:
    return str(json.loads(offset)["reservoirId"])


def _delta_position(offset: str) -> Position:
    parts = json.loads(offset)
    return int(parts["reservoirVersion"]), int(parts["index"])


def _iceberg_position(table: Any, offset: str) -> Position:
    """Return the number of the snapshot in the table's history, and how many of its files are read."""
    parts = json.loads(offset)
    snapshot = table.snapshot(parts["snapshot_id"])
    return -1 if snapshot is None else int(snapshot.sequenceNumber()), int(parts["position"])
