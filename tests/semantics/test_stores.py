"""Checkpoints where renames may not be atomic: refused by name before anything is touched, unless the owner vouches for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.stores import ATOMIC_CONF, TRIED_CONF, store_obstacle
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_agent.spark_internals.filesystems import filesystems_of
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import DrainState

from tests.semantics.operator_table import EVENTS, FIRST, SECOND
from tests.semantics.warm import Application, Batches, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[..., Application]
CLOSED_BEFORE = 50
"""The watermark is at 54 in the end, and windows are 10 seconds long."""


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> Callable[[str], str]:
    """Return a function that mounts the test's folder under another scheme, and returns its URI there."""

    def mount(scheme: str) -> str:
        java_context = spark.sparkContext._jsc
        assert java_context is not None
        hadoop = java_context.hadoopConfiguration()
        if scheme != "viewfs":
            hadoop.set(f"fs.{scheme}.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme")
        hadoop.set(f"fs.{scheme}.impl.disable.cache", "true")
        (tmp_path / "mounted").mkdir()
        hadoop.set("fs.viewfs.mounttable.bucket.link./data", f"file:{tmp_path}/mounted")
        return f"{scheme}://bucket/data"

    return mount


def test_refused_by_the_scheme_and_left_alone(store: Callable[[str], str], application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    app = application(store("s3"))
    query = app.start(events.stream().groupBy("at").count(), sink)
    read_all(query)
    checkpoint = tmp_path / "mounted/q"
    before = sorted(path for path in checkpoint.rglob("*") if path.is_file())
    with app.asked(DrainState.REJECTED) as report:
        assert report.reason == "UnsupportedCheckpointStore"
        assert "s3://bucket/data/q" in report.message
        assert f"{TRIED_CONF}=s3" in report.message
        assert f"{ATOMIC_CONF}=s3" in report.message
        assert "'Stop'" in report.message
    assert sorted(path for path in checkpoint.rglob("*") if path.is_file()) == before
    events.add(SECOND)
    read_all(query, len(EVENTS))


def test_a_view_that_leads_to_its_own_scheme_comes_to_an_end(spark: SparkSession, tmp_path: Path) -> None:
    """A mount of `ViewFileSystemOverloadScheme` takes the place of the filesystem that it leads to."""
    java_context = spark.sparkContext._jsc
    assert java_context is not None
    hadoop, view = java_context.hadoopConfiguration(), "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
    confs = {
        "fs.file.impl": view,
        "fs.file.impl.disable.cache": "true",
        "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        "fs.viewfs.mounttable.default.link./data": f"file:{tmp_path}",
    }
    for name, value in confs.items():
        hadoop.set(name, value)
    try:
        (found,) = filesystems_of(SparkInternals(spark), "file:///data")
    finally:
        for name in confs:
            hadoop.unset(name)
    assert found.implementation == view
    assert "file (" in store_obstacle([found], "", "")


@pytest.mark.parametrize("scheme", ["viewfs", "s3"])
def test_what_is_below_a_folder_is_named_as_the_view_has_it(scheme: str, store: Callable[[str], str], spark: SparkSession) -> None:
    files = CheckpointFiles(SparkInternals(spark), f"{store(scheme)}/q")
    assert files.below("state") == []
    files.write("state/0/1.delta", "")
    assert files.below("state") == ["state/0/1.delta"]


def test_stop_needs_no_renames(store: Callable[[str], str], application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    base = store("s3")
    app = application(base)
    read_all(app.start(_windows(events), sink))
    before = (tmp_path / "mounted/q/metadata").read_text()
    app.drain("Stop")
    app.close()
    assert (tmp_path / "mounted/q/metadata").read_text() == before
    assert not (tmp_path / "mounted/q/_drain").exists()
    events.add(SECOND)
    again = application(base)
    read_all(again.start(_windows(events), sink))
    again.close()
    assert not sink.drained
    assert sink.ids == Counter(event.id for event in EVENTS if event.at < CLOSED_BEFORE)


def test_a_word_is_not_enough_where_no_file_can_be_replaced(
    store: Callable[[str], str], application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's own manager for such a filesystem leaves an existing file as it is, and says nothing: a fence would not stand."""
    spark.conf.set(ATOMIC_CONF, "abfs, s3")
    events = Input(spark, tmp_path / "events")
    events.add(FIRST)
    app = application(store("s3"))
    read_all(app.start(_windows(events), Batches()))
    with app.asked(DrainState.REJECTED) as report:
        assert report.reason == "UnsupportedCheckpointStore"
        assert "no FileContext" in report.message
        assert "No AbstractFileSystem configured for scheme: s3" in report.message
    assert not (tmp_path / "mounted/q/_drain").exists()


@pytest.mark.parametrize("flush", [pytest.param("Auto", marks=pytest.mark.soak), "WorkCopy"])
def test_an_object_store_that_its_owner_has_tried_is_drained(
    flush: str, store: Callable[[str], str], application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    """No rename is relied on, and the lease is looked at once more, by whatever the store is."""
    spark.conf.set(TRIED_CONF, "oss, S3")
    spark.conf.set(FLUSH_CONF, flush)
    files = CheckpointFiles(SparkInternals(spark), store("s3"))
    assert not files.renames_atomically
    assert not files.compares
    _drained_and_read_on(files.root, application, spark, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_a_view_of_a_filesystem_with_atomic_renames_is_drained(
    flush: str, store: Callable[[str], str], application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set(FLUSH_CONF, flush)
    _drained_and_read_on(store("viewfs"), application, spark, tmp_path)


def _drained_and_read_on(base: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    app = application(base)
    read_all(app.start(_windows(events), sink))
    app.drain()
    app.close()
    assert sink.drained
    events.add(SECOND)
    again = application(base)
    read_all(again.start(_windows(events), sink))
    again.drain()
    assert sink.ids == Counter(event.id for event in EVENTS)


def _windows(events: Input) -> DataFrame:
    return events.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids")
