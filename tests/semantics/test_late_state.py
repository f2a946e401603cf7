"""State that a store's maintenance thread uploads late, beside and after a drain, is not read by the next generation."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF

from tests.semantics.operator_table import EVENTS
from tests.semantics.warm import PROVIDERS, Application, Batches, Input, read_all
from tests.support.own_jvm import session_confs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_STORE = "spark.sql.streaming.stateStore"
_RESTLESS = {
    f"{_STORE}.providerClass": PROVIDERS["rocksdb"],
    f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STORE}.maintenanceInterval": "100ms",
    f"{_STORE}.minDeltasForSnapshot": "1",
}


@pytest.fixture
def restless(spark: SparkSession) -> Iterator[None]:
    """Every 100 ms the maintenance thread makes a snapshot of what changed since the last one, and uploads it."""
    jvm: Any = spark.sparkContext._jvm
    with session_confs(spark, _RESTLESS):
        jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()  # the thread keeps the interval that it was started with
        yield
    jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()


@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_snapshots_beside_a_drain(
    flush: str, restless: None, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """Four incompatible generations; before each but the first, all old state comes back to where state is looked for."""
    spark.conf.set(FLUSH_CONF, flush)
    events, sink, state = Input(spark, tmp_path / "events"), Batches(), tmp_path / "checkpoints/q/state"
    snapshots = 0
    for generation, keys in enumerate((["key"], [], ["id", "key"], ["key"])):
        events.add(*(EVENTS[first : first + 2] for first in range(6 * generation, 6 * generation + 6, 2)))
        app = application()
        windows = events.stream().groupBy(F.window("at", "10 seconds"), *keys).agg(F.collect_list("id").alias("ids"), F.count("*"))
        read_all(app.start(windows.select("ids"), sink))
        archive = Path(app.drain().archive.removeprefix("file:"))
        app.close()
        snapshots += len(list(archive.glob("state/**/*.zip")))
        shutil.copytree(archive / "state", state, dirs_exist_ok=True)
    assert snapshots > 0, "the maintenance thread never had anything to do"
    assert sink.ids == Counter(event.id for event in EVENTS)
