"""Batch ids that go on across a drain: an incompatible version under the ids that the sink has not seen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.semantics.operator_table import EVENTS
from tests.semantics.warm import PROVIDERS, Application, Batches, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

CHANGED = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.streaming.multipleWatermarkPolicy": "max",
    "spark.sql.streaming.aggregation.stateFormatVersion": "1",
    "spark.sql.streaming.stateStore.compression.codec": "zstd",
}
"""Confs that Spark pins as long as there is state."""

Begin = Callable[[], Application]


@dataclass
class Idempotent(Batches):
    """A sink that takes each batch id once, as Delta does with a fixed txnAppId and the batch id for txnVersion."""

    taken: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        if batch_id in self.taken:
            self.refused.append(batch_id)
            return
        super().__call__(batch, batch_id)
        self.taken.append(batch_id)


def windows(events: Input, *keys: str, seconds: int = 10) -> DataFrame:
    grouped = events.stream().groupBy(F.window("at", f"{seconds} seconds"), *keys)
    return grouped.agg(F.collect_list("id").alias("ids"), F.count("*")).select("ids")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_sink_that_skips_ids_it_has_seen_gets_every_record(
    provider: str, application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
    events, sink = Input(spark, tmp_path / "events"), Idempotent()
    for number, keys in enumerate((["key"], [], ["id", "key"])):
        events.add(EVENTS[8 * number : 8 * number + 4], EVENTS[8 * number + 4 : 8 * number + 8])
        app = application()
        read_all(app.start(windows(events, *keys, seconds=10 + number), sink))
        report = app.drain()
        assert report.checkpoint_policy == "Reseed"
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)
    assert sink.refused == []
    assert sink.taken == list(range(len(sink.taken)))


def test_a_version_with_state_after_one_without(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """The query without state is continued as it is; what its next version needs is made when that starts, with that version's confs."""
    events, sink = Input(spark, tmp_path / "events"), Idempotent()
    events.add(EVENTS[:8])
    app = application()
    read_all(app.start(events.stream().select(F.array("id").alias("ids")), sink))
    assert app.drain().checkpoint_policy == "Continue"
    app.close()
    events.add(EVENTS[8:])
    app = application()
    for conf, value in CHANGED.items():
        spark.conf.set(conf, value)
    try:
        read_all(app.start(windows(events, "key"), sink))
        app.drain()
    finally:
        for conf in CHANGED:
            spark.conf.unset(conf)
    assert sink.ids == Counter(event.id for event in EVENTS)
    assert sink.refused == []
    newest = max((tmp_path / "checkpoints/q/offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    pinned = json.loads(newest.read_text().splitlines()[1])["conf"]
    assert {conf: pinned[conf] for conf in CHANGED} == CHANGED


def test_a_start_without_the_agent_fails_until_there_is_a_state(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Idempotent()
    events.add(EVENTS[:8])
    app = application()
    read_all(app.start(windows(events, "key"), sink))
    app.drain()
    app.close()
    events.add(EVENTS[8:])
    v2 = windows(events, seconds=7)
    plain = v2.writeStream.foreachBatch(sink).option("checkpointLocation", f"{tmp_path}/checkpoints/q").start()
    with pytest.raises(StreamingQueryException) as failed:
        plain.awaitTermination()
    assert "state" in str(failed.value)
    app = application()
    read_all(app.start(v2, sink))
    app.drain()
    assert sink.ids == Counter(event.id for event in EVENTS)
