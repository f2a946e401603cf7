"""How far a Delta or an Iceberg table goes that a query reads, and whether the query has read as far."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from spark_drain_agent.spark_internals.reflection import private_field

__all__ = ["TableGoal", "has_end", "table_goal"]

_DELTA = "org.apache.spark.sql.delta.sources.DeltaSource"
_ICEBERG = "org.apache.iceberg.spark.source.SparkMicroBatchStream"


class TableGoal:
    """An offset of a table that is to be read up to.

    Parameters
    ----------
    reaches
        Says whether an offset is that of the goal, or beyond it; None where the table has nothing yet.
    """

    def __init__(self, reaches: Callable[[str], bool] | None) -> None:
        self._reaches = reaches

    def reached(self, planned: str | None, committed: str | None) -> bool:  # noqa: ARG002  # the protocol's
        """Return whether a query with this offset of its newest committed batch has read as far."""
        return self._reaches is None or (committed is not None and self._reaches(committed))


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
    is_delta = str(source.getClass().getName()) == _DELTA
    if is_delta:
        start = None if planned is None else _delta_offset(jvm, planned)
    else:
        start = source.initialOffset() if planned is None else source.deserializeOffset(planned)
    found = source.latestOffset(start, jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.allAvailable())
    latest = planned if found is None else str(found.json())
    if latest is None:
        return TableGoal(None)
    return TableGoal(_beyond_delta(latest) if is_delta else _beyond_iceberg(jvm, private_field(source, "table"), latest))


def _delta_offset(jvm: Any, planned: str) -> Any:
    """Return an offset in the way that all releases of Delta have; that of a text is only in the newest ones."""
    offset = jvm.org.apache.spark.sql.execution.streaming.SerializedOffset.apply(planned)
    return jvm.org.apache.spark.sql.delta.sources.DeltaSourceOffset.apply(json.loads(planned)["reservoirId"], offset)


def _beyond_delta(latest: str) -> Callable[[str], bool]:
    def position(offset: str) -> tuple[int, int]:
        parts = json.loads(offset)
        return int(parts["reservoirVersion"]), int(parts["index"])

    goal = position(latest)
    return lambda offset: position(offset) >= goal


def _beyond_iceberg(jvm: Any, table: Any, latest: str) -> Callable[[str], bool]:
    """Compare numbers of snapshots in the table's history, and in one snapshot those of its files that are read.

    In tables of format version 1 each snapshot has the number 0: there a later one has the goal among its ancestors.
    """
    goal = json.loads(latest)
    of_goal = table.snapshot(goal["snapshot_id"])
    number, time = (-1, -1) if of_goal is None else (int(of_goal.sequenceNumber()), int(of_goal.timestampMillis()))

    def reaches(offset: str) -> bool:
        parts = json.loads(offset)
        if parts["snapshot_id"] == goal["snapshot_id"]:
            return int(parts["position"]) >= int(goal["position"])
        snapshot = table.snapshot(parts["snapshot_id"])
        if snapshot is None:
            return False
        if (of_this := int(snapshot.sequenceNumber())) != number:
            return of_this > number
        if table.snapshot(goal["snapshot_id"]) is None:  # it has expired meanwhile
            return int(snapshot.timestampMillis()) >= time
        return bool(jvm.org.apache.iceberg.util.SnapshotUtil.isAncestorOf(table, parts["snapshot_id"], goal["snapshot_id"]))

    return reaches
