"""The flush batch has the state schema of the batches before, which had input."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from spark_drain_agent.checkpoint.discard import discard_pending
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.checkpoint.restore import check_restorable, restore
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF, FLUSH_VALUES
from spark_drain_agent.spark_internals.state_stores import STATE_PROVIDER

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Feed, exactly, ids_in
from tests.agent.warm import Warm
from tests.semantics.user_code import SCHEMA, Collector, Remembering
from tests.semantics.warm import PROVIDERS
from tests.support.own_jvm import session_confs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(params=FLUSH_VALUES)
def flush(request: pytest.FixtureRequest, warm: Warm) -> Iterator[str]:
    warm.session.conf.set(FLUSH_CONF, request.param)
    yield request.param
    warm.session.conf.unset(FLUSH_CONF)


def run_once(writer: DataStreamWriter) -> None:
    """Let an earlier run read what there is; it ends without a drain."""
    query = writer.start()
    query.processAllAvailable()
    query.stop()


@pytest.mark.parametrize(
    ("flush", "restarted"),
    [("Auto", False), ("WorkCopy", True), *(pytest.param(*each, marks=pytest.mark.soak) for each in (("Auto", True), ("WorkCopy", False)))],
    indirect=["flush"],
)
@pytest.mark.usefixtures("flush")
def test_keys_of_which_the_optimizer_finds_that_they_are_never_null(warm: Warm, tmp_path: Path, restarted: bool) -> None:
    """Over an empty relation it calculates them before it looks, and Spark refuses a key that may be null in place of one that may not."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    since = F.to_date(F.lit("2026-01-01")).alias("since")
    half = F.when(F.col("id") % 2 == 0, F.lit("2026-01-01")).otherwise("2026-01-02").cast("date").alias("half")
    rows = read(warm.session, tmp_path)
    windows = counted(rows, since, half).writeStream.queryName("windows").foreachBatch(to_files(tmp_path / "out"))
    writers = [windows.option("checkpointLocation", str(tmp_path / "windows"))]
    totals = {
        "constant": rows.withColumn("since", since).groupBy("since").agg(F.count("*")),
        "either": rows.groupBy(half).agg(F.count("*")),
        "within": rows.withColumn("since", since).groupBy("id").agg(F.max(F.struct("since", "id"))),
        "twice": rows.withColumn("since", since).dropDuplicates(["id", "since"]),
    }
    for name, frame in totals.items():
        writer = frame.writeStream.queryName(name).outputMode("append" if name == "twice" else "update").format("noop")
        writers.append(writer.option("checkpointLocation", str(tmp_path / name)))
    if restarted:
        for writer in writers:
            run_once(writer)
    for query in [writer.start() for writer in writers]:
        query.processAllAvailable()
    assert ids_in(tmp_path / "out") != exactly(feed.ids)
    warm.drain(stateLossPolicy="Accept")
    assert ids_in(tmp_path / "out") == Counter(feed.ids)


def with_one_that_has_none(warm: Warm, folder: Path) -> DataFrame:
    """Return the input, with a key that is never null, in a union with a stream without input, whose key may be."""
    (folder / "other/input").mkdir(parents=True)
    often, seldom = read(warm.session, folder), read(warm.session, folder / "other")
    return often.withColumn("key", F.lit("often")).unionByName(seldom.withColumn("key", F.col("id").cast("string")))


@pytest.mark.parametrize("flush", [pytest.param("Auto", marks=pytest.mark.soak), "WorkCopy"], indirect=True)
@pytest.mark.usefixtures("flush")
def test_a_source_that_had_no_input_in_the_batches_before(warm: Warm, tmp_path: Path) -> None:
    """Without it, Spark plans a union as the other source alone, whose key is never null."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    windows = counted(with_one_that_has_none(warm, tmp_path), F.col("key")).writeStream.foreachBatch(to_files(tmp_path / "out"))
    writer = windows.option("checkpointLocation", f"{tmp_path}/checkpoint")
    run_once(writer)
    writer.start().processAllAvailable()
    warm.drain()
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


@pytest.mark.parametrize("version", [Collector, Remembering], ids=["the same version", "one with another variable"])
def test_the_schemas_of_a_processor_are_found_after_a_flush_that_was_the_first_batch(
    warm: Warm, tmp_path: Path, version: type[Collector]
) -> None:
    """In its first batch a run stores the schemas of what is new in it, and the metadata names where: below the work copy."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    by_key = (
        read(warm.session, tmp_path).withWatermark("at", "0 seconds").withColumn("key", (F.col("id") % 2).cast("string")).groupBy("key")
    )

    def writer(processor: Collector) -> DataStreamWriter:
        emitted = by_key.transformWithStateInPandas(processor, SCHEMA, "append", "EventTime")
        return emitted.writeStream.foreachBatch(to_files(tmp_path / "out")).option("checkpointLocation", f"{tmp_path}/checkpoint")

    with session_confs(warm.session, {STATE_PROVIDER: PROVIDERS["rocksdb"]}):
        run_once(writer(Collector("event")))
        writer(version("event")).start().processAllAvailable()
        warm.drain(checkpoint__policy="Continue")
        feed.add()
        writer(version("event")).start().processAllAvailable()
        warm.drain()
    emitted = [json.loads(line)["ids"] for path in (tmp_path / "out").glob("*.json") for line in path.read_text().splitlines()]
    assert Counter(int(number) for ids in emitted for number in ids.split()) == exactly(feed.ids)


def by_parity(rows: DataFrame) -> DataFrame:
    """Group by a key that is never null."""
    return counted(rows, F.coalesce(F.col("id") % 2, F.lit(0)))


def without_key(rows: DataFrame) -> DataFrame:
    return counted(rows)


def of_other_values(rows: DataFrame) -> DataFrame:
    """Group by the same key, but that it may be null, which Spark finds first."""
    windows = rows.withWatermark("at", "30 seconds").groupBy(F.window("at", "60 seconds"), F.col("id") % 2)
    return windows.agg(F.array(F.max("id")).alias("ids"))


@pytest.mark.parametrize(("version", "refused"), [(without_key, "KEY"), pytest.param(of_other_values, "VALUE", marks=pytest.mark.soak)])
def test_a_version_does_not_flush_state_that_it_cannot_read(
    warm: Warm, tmp_path: Path, version: Callable[[DataFrame], DataFrame], refused: str
) -> None:
    """It has run no batch, in which Spark would have refused the state of the version before, which ended without a drain."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    rows = read(warm.session, tmp_path)
    before, after = (
        frame.writeStream.option("checkpointLocation", f"{tmp_path}/checkpoint").foreachBatch(to_files(tmp_path / "out"))
        for frame in (by_parity(rows), version(rows))
    )
    run_once(before)
    emitted = ids_in(tmp_path / "out")
    after.start().processAllAvailable()
    with warm.requested() as asked:
        stalled = warm.drains.reaches(asked, "Stalled", reason="FlushFailed")
        assert f"STATE_STORE_{refused}_SCHEMA_NOT_COMPATIBLE" in stalled["message"]
    assert ids_in(tmp_path / "out") == emitted
    files = CheckpointFiles(warm.agent.internals, f"{tmp_path}/checkpoint")
    discard_pending(files, read_journal(files))
    restore(files, check_restorable(files, read_journal(files), discard_newer=False, accept_reuse=True))
    before.start().processAllAvailable()
    warm.drain()
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def windows_of_each_id_once(rows: DataFrame) -> DataFrame:
    return counted(rows.dropDuplicates(["id"]))


def stateless(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("array(id) AS ids")


@pytest.mark.parametrize(
    ("first", "then", "drained"),
    [(counted, stateless, False), (counted, stateless, True), (windows_of_each_id_once, counted, False)],
    ids=["none", "none behind a drain", "fewer"],
)
def test_a_version_with_fewer_operators_does_not_leave_the_state_of_another_behind(
    warm: Warm, tmp_path: Path, first: Callable[[DataFrame], DataFrame], then: Callable[[DataFrame], DataFrame], drained: bool
) -> None:
    """Whether or not the batch ids have started again since, behind a drain."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    rows = read(warm.session, tmp_path)
    before, after = (
        make(rows).writeStream.option("checkpointLocation", f"{tmp_path}/checkpoint").foreachBatch(to_files(tmp_path / "out"))
        for make in (first, then)
    )
    if drained:
        before.start().processAllAvailable()
        warm.drain(checkpoint__policy="Reseed", checkpoint__acceptBatchIdRestart="true")
        feed.add()
    run_once(before)
    query = after.start()
    query.processAllAvailable()
    reason, message = warm.refused(stateLossPolicy="Accept")
    assert (reason, "state of another version" in message) == ("UnsupportedQuery", True)
    query.stop()
    before.start().processAllAvailable()
    warm.drain(stateLossPolicy="Accept")
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
