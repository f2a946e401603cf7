"""The state stores of a plan are those that Spark makes, and are found by few questions to the JVM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from spark_drain_agent.spark_internals.state_stores import pinned_confs, planned_stores

from tests.agent.asked import Asked
from tests.agent.warm import Warm

pytestmark = pytest.mark.spark


def test_stores_are_planned_without_an_exception(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of the JVM is translated by some sixty questions, and each operator of a plan that keeps no state cost one."""
    warm.session.range(3).write.parquet(f"{tmp_path}/input")
    read = warm.session.readStream.schema("id long").parquet(f"{tmp_path}/input")
    counted = read.join(warm.session.range(2), "id", "left").dropDuplicates().groupBy("id").count()
    writer = counted.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{tmp_path}/checkpoint").start().awaitTermination()
    (query,) = warm.agent.registry.all()
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": pinned_confs(query.internals)}
    asked = Asked(monkeypatch)
    stores = planned_stores(query.internals, query.captured, f"file:{tmp_path}/other", json.dumps(metadata))
    assert [item.operator for item in stores] == ["StateStoreSaveExec", "StreamingDeduplicateExec"]
    assert not [command for command in asked.commands if "TypeUtil" in command]


@pytest.mark.parametrize(
    "over",
    [
        lambda rows: rows.limit(2),
        lambda rows: rows.agg(F.sum("id")),
        lambda rows: rows.groupBy("id").count(),
        lambda rows: rows.dropDuplicates(),
        lambda rows: rows.dropDuplicates().agg(F.sum("id")),
        lambda rows: rows.join(rows.withColumnRenamed("id", "other"), F.expr("id = other")),
    ],
    ids=["limit", "no key", "key", "duplicates", "two operators", "join"],
)
def test_each_store_has_the_folders_that_spark_makes(warm: Warm, tmp_path: Path, over: Callable[[DataFrame], DataFrame]) -> None:
    """An operator over all rows has one partition, whatever the number of those that a shuffle makes."""
    warm.session.range(3).write.parquet(f"{tmp_path}/input")
    rows = over(warm.session.readStream.schema("id long").parquet(f"{tmp_path}/input"))
    mode = "update" if "sum" in str(rows.columns) or "count" in rows.columns else "append"
    writer = rows.writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
    writer.option("checkpointLocation", f"{tmp_path}/checkpoint").start().awaitTermination()
    (query,) = warm.agent.registry.all()
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": pinned_confs(query.internals)}
    planned = planned_stores(query.internals, query.captured, f"file:{tmp_path}/other", json.dumps(metadata))
    made = {str(path.parent.relative_to(tmp_path / "checkpoint")) for path in (tmp_path / "checkpoint/state").rglob("1.delta")}
    assert {folder for item in planned for folder in item.folders()} == made
