"""Checkpoints in S3: drained in both ways, with both providers of state and both of Spark's file managers, and read on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_store import DrainState

from tests.semantics import test_continue
from tests.semantics.operator_table import EVENTS, FIRST, SECOND
from tests.semantics.warm import PROVIDERS, Application, Batches, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[[], Application]


def counted(frame: DataFrame, *keys: str) -> DataFrame:
    return frame.groupBy(F.window("at", "10 seconds"), *keys).agg(F.collect_list("id").alias("ids")).select(*keys, "ids")


MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.fixture(autouse=True)
def manager(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Let Spark write its own files by one request each, as a conf may have it."""
    if "abortable" in request.node.name:
        spark.conf.set(MANAGER, "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager")
    yield
    spark.conf.unset(MANAGER)


@pytest.mark.parametrize("setting", ["Auto-hdfs", "Auto-rocksdb-abortable", "WorkCopy-hdfs-abortable", "WorkCopy-rocksdb"])
def test_an_incompatible_version_reads_on(setting: str, bucket: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    flush, provider, *_ = setting.split("-")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
    spark.conf.set(FLUSH_CONF, flush)
    events, sink = Input(spark, tmp_path / "events"), Batches()
    for file, keys in ((FIRST, ("key",)), (SECOND, ())):
        events.add(file)
        app = application()
        read_all(app.start(counted(events.stream(), *keys), sink))
        report = app.drain()
        assert report.archive.startswith(f"{bucket}/q/_drain/")
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)


@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_state_is_taken_back_from_the_flush(flush: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    test_continue.test_a_window_at_the_cut_has_a_row_from_each_side(flush, application, spark, tmp_path)


def test_a_store_that_compares_nothing_is_refused_by_name(application: Begin, spark: SparkSession, tmp_path: Path, folder: Path) -> None:
    java_context = spark.sparkContext._jsc
    assert java_context is not None
    hadoop, events = java_context.hadoopConfiguration(), Input(spark, tmp_path / "events")
    confs = {"fs.s3a.create.conditional.enabled": "false", "fs.s3a.impl.disable.cache": "true"}
    for name, value in confs.items():
        hadoop.set(name, value)
    try:
        events.add(FIRST)
        app = application()
        read_all(app.start(counted(events.stream()), Batches()))
        with app.asked(DrainState.REJECTED) as report:
            assert report.reason == "UnsupportedCheckpointStore"
            assert "cannot create an object only where there is none: use hadoop-aws 3.4.2 or newer" in report.message
        assert not (folder / "q/_drain").exists()
    finally:
        for name in confs:
            hadoop.unset(name)


def test_a_fence_is_refused_by_plain_spark(bucket: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    app = application()
    read_all(app.start(counted(events.stream()), sink))
    app.drain(checkpoint__policy="Keep")
    app.close()
    assert sink.ids == Counter(event.id for event in FIRST)
    unaware = counted(events.stream()).writeStream.foreachBatch(sink).option("checkpointLocation", f"{bucket}/q")
    with pytest.raises(JavaError, match="FENCED_BY_SPARK_DRAIN"):
        unaware.start()
    assert sink.ids == Counter(event.id for event in FIRST)
