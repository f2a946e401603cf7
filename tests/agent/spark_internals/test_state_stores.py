"""The state stores of a plan are found by few questions to the JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
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
