"""Checkpoints in S3: drained in both ways, with both providers of state and both of Spark's file managers, and read on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession
from spark_drain_agent.checkpoint import lease
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_store import DrainState

from tests.s3.moments import Setting
from tests.s3.table import check_versions, counted
from tests.semantics import test_continue
from tests.semantics.operator_table import FIRST
from tests.semantics.warm import PROVIDERS, Application, Batches, Input, read_all
from tests.support.s3_proxy import Fault
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[[], Application]


SETTINGS = [
    (Setting("WorkCopy", "Reseed", "abortable"), "rocksdb"),
]
REST = [
    (Setting("Auto", "Reseed"), "hdfs"),
    (Setting("Auto", "Reseed", "abortable"), "rocksdb"),
    (Setting("WorkCopy", "Reseed", "abortable"), "hdfs"),
    (Setting("WorkCopy", "Reseed"), "rocksdb"),
]


@pytest.mark.parametrize(
    "way", [*SETTINGS, *(pytest.param(way, marks=pytest.mark.soak) for way in REST)], ids=lambda way: f"{way[0]}-{way[1]}"
)
def test_an_incompatible_version_reads_on(
    way: tuple[Setting, str], bucket: str, application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    setting, provider = way
    setting.apply(spark)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
    check_versions(application, spark, bucket, tmp_path / "events")


@pytest.mark.soak
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
        read_all(app.start(counted(events), Batches()))
        with app.asked(DrainState.REJECTED) as report:
            assert report.reason == "UnsupportedCheckpointStore"
            assert "cannot create an object only where there is none: use hadoop-aws 3.4.2 or newer" in report.message
        assert not (folder / "q/_drain").exists()
    finally:
        for name in confs:
            hadoop.unset(name)


@pytest.mark.soak
@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_no_exception_is_translated(
    flush: str, application: Begin, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a file is not there is an answer like another one: by PySpark's translation it takes as long as ten."""
    Setting(flush, "Reseed").apply(spark)
    events, translated = Input(spark, tmp_path / "events"), Mock(wraps=captured.convert_exception)
    events.add(FIRST)
    app = application()
    read_all(app.start(counted(events), Batches()))
    monkeypatch.setattr(captured, "convert_exception", translated)
    app.drain()
    assert translated.call_count == 0


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Input:
    events = Input(spark, tmp_path / "events")
    events.add(FIRST)
    return events


@pytest.mark.parametrize(
    "conditions",
    [
        ("ignored", "the store ignores the condition of a write: an object was replaced that was to be written only where there is none"),
        pytest.param(
            (
                "if-match",
                "the store ignores the condition of a write: an object was replaced that was to be written only where it is as it was",
            ),
            marks=pytest.mark.soak,
        ),
        ("refused", "no object can be written only where there is none"),
    ],
    ids=lambda conditions: conditions[0],
)
def test_a_store_whose_writes_have_no_conditions_is_refused_by_name(
    conditions: tuple[str, str], application: Begin, stream: Input, folder: Path, s3: S3Server
) -> None:
    """The connector has them: two drivers would both have the lease, or a query would be ended for a drain that cannot begin."""
    lease._comparing.clear()
    app = application()
    query = app.start(counted(stream), Batches())
    read_all(query)
    s3.proxy.conditions, told = conditions
    try:
        with app.asked(DrainState.REJECTED) as report:
            assert report.reason == "UnsupportedCheckpointStore"
            assert told in report.message
            assert "use mode 'Stop'" in report.message
            assert "set fs.s3a.create.conditional.enabled=false and spark.sparkdrain.checkpoint.triedObjectStores=s3a" in report.message
            assert query.isActive
    finally:
        s3.proxy.conditions = ""
    assert not [path for path in (folder / "q/_drain").rglob("*") if path.is_file()]
    with app.asked(DrainState.DRAINED):
        pass


@pytest.mark.parametrize("kind", ["PUT", pytest.param("DELETE", marks=pytest.mark.soak)])
def test_a_missing_permission_is_told_by_name_for_each_checkpoint(
    kind: str, application: Begin, stream: Input, folder: Path, s3: S3Server
) -> None:
    """Rights may be granted for one folder of a bucket and not for another: the first drain of this driver has tried its own."""
    lease._comparing.clear()
    app = application()
    read_all(app.start(counted(stream), Batches()))
    with app.asked(DrainState.DRAINED):
        pass
    queries = [app.start(counted(stream), Batches(), name=name) for name in ("q", "second")]
    for query in queries:
        read_all(query)
    s3.proxy.fault = Fault(kind, "second/_drain/probe", status=403)
    try:
        with app.asked(DrainState.FAILED) as report:
            assert report.reason == "CheckpointUnwritable"
            assert "the driver lacks a permission that a drain needs; the queries run on: " in report.message
            assert "grant its credentials reading, writing, listing and deleting there" in report.message
            assert all(query.isActive for query in queries)
    finally:
        s3.proxy.fault = None
    with app.asked(DrainState.DRAINED):
        pass
    assert not (folder / "second/_drain/probe").exists()


def test_a_fence_is_refused_by_plain_spark(bucket: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    app = application()
    read_all(app.start(counted(events), sink))
    app.drain(checkpoint__policy="Keep")
    app.close()
    assert sink.ids == Counter(event.id for event in FIRST)
    unaware = counted(events).writeStream.foreachBatch(sink).option("checkpointLocation", f"{bucket}/q")
    with pytest.raises(JavaError, match="FENCED_BY_SPARK_DRAIN"):
        unaware.start()
    assert sink.ids == Counter(event.id for event in FIRST)
