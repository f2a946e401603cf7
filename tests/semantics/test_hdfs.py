"""Checkpoints on HDFS, another filesystem than the driver's own: the same drains, archives and fences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.semantics.operator_table import EVENTS, FIRST, SECOND
from tests.semantics.warm import PROVIDERS, Application, Batches, Input, read_all
from tests.support.hdfs import hdfs_running
from tests.support.lease_race import race

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[[str], Application]


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs_running(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


def counted(frame: DataFrame, *keys: str) -> DataFrame:
    return frame.groupBy(F.window("at", "10 seconds"), *keys).agg(F.collect_list("id").alias("ids")).select(*keys, "ids")


MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.fixture
def manager(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Let Spark use the file manager that cannot replace a file on HDFS, as a conf may have it."""
    if "renaming" in request.node.name:
        spark.conf.set(MANAGER, "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager")
    yield
    spark.conf.unset(MANAGER)


@pytest.mark.usefixtures("manager")
@pytest.mark.parametrize(
    "setting", ["Auto-rocksdb", *(pytest.param(setting, marks=pytest.mark.soak) for setting in ("WorkCopy-hdfs", "WorkCopy-hdfs-renaming"))]
)
def test_an_incompatible_version_reads_on(setting: str, hdfs: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    flush, provider, *_ = setting.split("-")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
    spark.conf.set(FLUSH_CONF, flush)
    events, sink = Input(spark, tmp_path / "events"), Batches()
    base = f"{hdfs}/{setting}"
    for file, keys in ((FIRST, ("key",)), (SECOND, ())):
        events.add(file)
        app = application(base)
        read_all(app.start(counted(events.stream(), *keys), sink))
        report = app.drain()
        assert report.archive.startswith(f"{base}/q/_drain/")
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)


def test_of_drivers_that_find_no_lease_one_has_it(hdfs: str, spark: SparkSession) -> None:
    internals = SparkInternals(spark)
    assert race(lambda folder: CheckpointFiles(internals, f"{hdfs}/raced/{folder}")) == [1] * 5


def test_a_file_is_copied_in_place_of_another(hdfs: str, spark: SparkSession) -> None:
    files = CheckpointFiles(SparkInternals(spark), f"{hdfs}/copied")
    files.write("1.delta", "empty")
    for _ in range(2):  # as after a crash
        files.copy("1.delta", "state/0/0/1.delta")
    assert files.read("state/0/0/1.delta") == "empty"


def test_a_fence_on_hdfs_is_refused_by_plain_spark(hdfs: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    base = f"{hdfs}/kept"
    app = application(base)
    read_all(app.start(counted(events.stream()), sink))
    app.drain(checkpoint__policy="Keep")
    app.close()
    assert sink.ids == Counter(event.id for event in FIRST)
    unaware = counted(events.stream()).writeStream.foreachBatch(sink).option("checkpointLocation", f"{base}/q")
    with pytest.raises(JavaError, match="FENCED_BY_SPARK_DRAIN"):
        unaware.start()
    assert sink.ids == Counter(event.id for event in FIRST)
