"""Newer checkpoint formats: state whose files have ids, which the commit log names, and an offset log that names its sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.checkpoint.empty_state import EmptyStateError
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.checkpoint.restore import check_restorable, restore
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import DrainState

from tests.semantics.operator_table import EVENTS, FIRST, SECOND
from tests.semantics.warm import PROVIDERS, Application, Batches, Input, read_all
from tests.support.own_jvm import session_confs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[[], Application]
STATE, OFFSETS = (f"spark.sql.streaming.{name}" for name in ("stateStore.checkpointFormatVersion", "offsetLog.formatVersion"))


@pytest.fixture
def newer(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS["rocksdb"])
    with session_confs(spark, {STATE: "2", OFFSETS: "2"}):
        yield


def counted(frame: DataFrame, *keys: str) -> DataFrame:
    return frame.groupBy(F.window("at", "10 seconds"), *keys).agg(F.collect_list("id").alias("ids")).select("ids")


def versions(checkpoint: Path) -> set[str]:
    return {path.read_text().partition("\n")[0] for log in ("offsets", "commits") for path in (checkpoint / log).glob("[0-9]*")}


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize(
    ("flush", "policy"),
    [
        ("Auto", "Reseed"),
        ("WorkCopy", "Continue"),
        pytest.param("Auto", "Continue", marks=pytest.mark.soak),
        pytest.param("WorkCopy", "Reseed", marks=pytest.mark.soak),
    ],
)
def test_drained_and_read_on(flush: str, policy: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """After Reseed by another plan; after Continue by the same one, which finds its state."""
    spark.conf.set(FLUSH_CONF, flush)
    events, sink = Input(spark, tmp_path / "events"), Batches()
    for file, keys in ((FIRST, ()), (SECOND, ("key",) if policy == "Reseed" else ())):
        events.add(file)
        app = application()
        read_all(app.start(counted(events.stream(), *keys), sink))
        assert versions(tmp_path / "checkpoints/q") == {"v2"}
        app.drain(checkpoint__policy=policy, **({"checkpoint__acceptBatchIdRestart": "true"} if policy == "Reseed" else {}))
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)


@pytest.mark.usefixtures("newer")
def test_batch_ids_go_on_with_the_state_only(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """An empty state without ids is refused by Spark; so the default keeps the state where a sink may remember batch ids."""
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    app = application()
    read_all(app.start(counted(events.stream()), sink))
    with app.asked(DrainState.REJECTED, checkpoint__policy="Reseed") as report:
        assert report.reason == "CheckpointPolicyUnsafe"
        assert f"{STATE} is 2" in report.message
    assert app.drain().checkpoint_policy == "Continue"


@pytest.mark.usefixtures("newer")
def test_a_version_that_begins_with_empty_state_is_told_to_use_the_older_format(
    application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    for conf in (STATE, OFFSETS):
        spark.conf.set(conf, 1)
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    app = application()
    read_all(app.start(counted(events.stream()), sink))
    app.drain(checkpoint__policy="Reseed")
    app.close()
    events.add(SECOND)
    spark.conf.set(STATE, 2)
    again = application()
    with pytest.raises(EmptyStateError, match="checkpointFormatVersion is 2"):
        again.start(counted(events.stream(), "key"), sink)
    spark.conf.set(STATE, 1)
    read_all(again.start(counted(events.stream(), "key"), sink))
    again.drain()
    assert sink.ids == Counter(event.id for event in EVENTS)


@pytest.mark.usefixtures("newer")
def test_a_query_without_state_begins_in_any_format(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    for file in (FIRST, SECOND):
        events.add(file)
        app = application()
        read_all(app.start(events.stream().select(F.array("id").alias("ids")), sink))
        app.drain()
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)


@pytest.mark.usefixtures("newer")
def test_an_archive_is_put_back(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    app = application()
    read_all(app.start(counted(events.stream()), sink))
    app.drain(checkpoint__policy="Reseed", checkpoint__acceptBatchIdRestart="true")
    app.close()
    files = CheckpointFiles(SparkInternals(spark), f"file:{tmp_path}/checkpoints/q")
    restore(files, check_restorable(files, read_journal(files), discard_newer=False, accept_reuse=True))
    before = list(sink.drained)
    assert before
    events.add(SECOND)
    again = application()
    read_all(again.start(counted(events.stream()), sink))
    again.drain()
    rows = Counter(sink.rows)
    rows.subtract(before)  # the windows that the first flush emitted come again when they are complete
    assert Counter(number for row in rows.elements() for cell in row for number in cell) == Counter(event.id for event in EVENTS)
