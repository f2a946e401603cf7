"""Whether a query has read a table as far as it went when a drain asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from spark_drain_agent.spark_internals.table_sources import table_goal

ICEBERG = "org.apache.iceberg.spark.source.SparkMicroBatchStream"
DELTA = "org.apache.spark.sql.delta.sources.DeltaSource"


@dataclass(frozen=True)
class Snapshot:
    """Of an Iceberg table."""

    number: int
    time: int
    parent: int | None

    def sequenceNumber(self) -> int:  # noqa: N802  # Java's name
        return self.number

    def timestampMillis(self) -> int:  # noqa: N802
        return self.time


class Table:
    """An Iceberg table with three snapshots, one after the other."""

    def __init__(self, version: int) -> None:
        self.snapshots = {
            11: Snapshot(1 if version > 1 else 0, 100, None),
            22: Snapshot(2 if version > 1 else 0, 99, 11),  # by another computer's clock
            33: Snapshot(3 if version > 1 else 0, 300, 22),
        }

    def snapshot(self, number: int) -> Snapshot | None:
        return self.snapshots.get(number)


def is_ancestor(table: Table, number: int, ancestor: int) -> bool:
    """Do what `SnapshotUtil.isAncestorOf` does."""
    found: int | None = number
    while found is not None and found in table.snapshots and found != ancestor:
        found = table.snapshots[found].parent
    return found == ancestor


def offset(snapshot: int, position: int) -> str:
    return json.dumps({"version": 1, "snapshot_id": snapshot, "position": position})


def source(kind: str, latest: str | None, table: Table | None = None) -> Any:
    end = None if latest is None else SimpleNamespace(json=lambda: latest)
    return SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: kind),
        initialOffset=lambda: None,
        deserializeOffset=lambda planned: planned,
        latestOffset=lambda *_: end,
        table=table,
    )


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("spark_drain_agent.spark_internals.table_sources.private_field", getattr)
    limit = SimpleNamespace(ReadLimit=SimpleNamespace(allAvailable=lambda: None))
    serialized = SimpleNamespace(SerializedOffset=SimpleNamespace(apply=lambda text: text))
    spark = SimpleNamespace(
        execution=SimpleNamespace(streaming=serialized),
        delta=SimpleNamespace(sources=SimpleNamespace(DeltaSourceOffset=SimpleNamespace(apply=lambda *parts: parts))),
        connector=SimpleNamespace(read=SimpleNamespace(streaming=limit)),
    )
    ancestors = SimpleNamespace(SnapshotUtil=SimpleNamespace(isAncestorOf=is_ancestor))
    apache = SimpleNamespace(spark=SimpleNamespace(sql=spark), iceberg=SimpleNamespace(util=ancestors))
    return SimpleNamespace(org=SimpleNamespace(apache=apache))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("committed", "reached"),
    [
        (None, False),
        (offset(11, 5), False),
        (offset(11, 2), False),
        (offset(22, 1), False),
        (offset(22, 2), True),
        (offset(33, 0), True),
        (offset(44, 9), False),
    ],
    ids=["nothing", "more files of an earlier one", "as many of an earlier one", "a part", "all", "a later one", "one that has expired"],
)
def test_snapshots_follow_each_other_in_each_format(version: int, committed: str | None, reached: bool, jvm: Any) -> None:
    """In tables of format version 1 snapshots have no numbers."""
    goal = table_goal(jvm, source(ICEBERG, offset(22, 2), Table(version)), None)
    assert goal.reached(None, committed) is reached


@pytest.mark.parametrize("version", [1, 2])
def test_a_goal_that_has_expired_since(version: int, jvm: Any) -> None:
    table = Table(version)
    goal = table_goal(jvm, source(ICEBERG, offset(22, 2), table), None)
    del table.snapshots[22]
    assert goal.reached(None, offset(33, 0))


@pytest.mark.parametrize(("version", "index", "reached"), [(3, 9, False), (4, 1, False), (4, 2, True), (5, -1, True)])
def test_versions_of_a_delta_table(version: int, index: int, reached: bool, jvm: Any) -> None:
    goal, committed = ({"reservoirId": "t", "reservoirVersion": at, "index": files} for at, files in ((4, 2), (version, index)))
    assert table_goal(jvm, source(DELTA, json.dumps(goal)), json.dumps(goal)).reached(None, json.dumps(committed)) is reached


def test_an_empty_table_is_read(jvm: Any) -> None:
    assert table_goal(jvm, source(DELTA, None), None).reached(None, None)
