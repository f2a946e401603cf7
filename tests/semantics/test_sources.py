"""Sources under a drain: each record is counted once by the version that was drained and the one that goes on, whatever it came from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.checkpoint.empty_state import EmptyStateError
from spark_drain_store import DrainState, QueryReport

from tests.semantics.operator_table import CLICKS, FIRST, SECOND
from tests.semantics.warm import Application, Batches, Event, Input, read_all, until
from tests.support.lines import lines_served

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[[], Application]
THIRD = [Event(number, "abc"[number % 3], 2 * number + 40) for number in range(24, 36)]


def counted(frame: DataFrame, column: str = "id", at: str = "at", size: int = 10) -> DataFrame:
    return frame.groupBy(F.window(at, f"{size} seconds")).agg(F.collect_list(column).alias("ids")).select("ids")


def ids(*files: list[Event]) -> Counter[int]:
    return Counter(event.id for file in files for event in file)


def drained(begin: Begin, frame: DataFrame, sink: Batches, ready: Callable[[StreamingQuery], object]) -> QueryReport:
    app = begin()
    ready(app.start(frame, sink))
    report = app.drain()
    app.close()
    return report


def read(records: int) -> Callable[[StreamingQuery], None]:
    return lambda query: read_all(query, records)


def batches(count: int) -> Callable[[StreamingQuery], None]:
    """Wait for so many batches with data; sources that never rest have no other measure."""

    def ready(query: StreamingQuery) -> None:
        until(lambda: sum(progress["numInputRows"] > 0 for progress in query.recentProgress) >= count, f"{count} batches")

    return ready


def test_two_folders(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """Each source ends and begins at its own offset; the next version groups otherwise."""
    events, clicks, sink = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks"), Batches()
    events.add(FIRST, SECOND)
    clicks.add(CLICKS[0])

    def union(size: int) -> DataFrame:
        return counted(events.stream().unionByName(clicks.stream()), size=size)

    report = drained(application, union(10), sink, read_all)
    assert sink.ids == ids(FIRST, SECOND, CLICKS[0])
    offsets = {Path(name.rstrip("]")).name: json.loads(offset)["logOffset"] for name, offset in report.end_offsets.items()}
    assert offsets == {"events": 1, "clicks": 0}
    events.add(THIRD)
    clicks.add(CLICKS[1])
    drained(application, union(25), sink, read_all)
    assert sink.ids == ids(FIRST, SECOND, THIRD, *CLICKS)


@contextmanager
def naming(spark: SparkSession) -> Iterator[None]:
    """Let sources have names of the user's in the offset log (Spark 4.2)."""
    confs = {"spark.sql.streaming.queryEvolution.enableSourceEvolution": "true", "spark.sql.streaming.offsetLog.formatVersion": "2"}
    before = {name: str(spark.conf.get(name)) for name in confs}
    for name, value in confs.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def names_allowed(spark: SparkSession) -> Iterator[None]:
    with naming(spark):
        yield


@pytest.mark.usefixtures("names_allowed")
@pytest.mark.parametrize("mode", ["Drain", pytest.param("Stop", marks=pytest.mark.soak)])
def test_two_folders_with_names(application: Begin, spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """The report names their offsets so; a next version with one source more that is interrupted in its first batch starts again."""
    events, clicks, sink = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks"), Batches()
    events.add(FIRST, SECOND)
    clicks.add(CLICKS[0])

    def union(*names: str, size: int = 10) -> DataFrame:
        inputs = {"an_event": events, "click": clicks}
        return counted(reduce(DataFrame.unionByName, [inputs[name].stream(source=name) for name in names]), size=size)

    first = application()
    read_all(first.start(union("an_event"), sink))
    assert list(first.drain().end_offsets) == ["an_event"]
    first.close()

    def fail(_batch: DataFrame, _batch_id: int) -> None:
        raise RuntimeError("out of milk")

    interrupted = application()
    with pytest.raises(StreamingQueryException, match="out of milk"):
        interrupted.start(union("click", "an_event", size=25), fail).awaitTermination()
    interrupted.close()
    again = application()
    read_all(again.start(union("click", "an_event", size=25), sink))
    offsets = {name: json.loads(offset)["logOffset"] for name, offset in again.drain(mode=mode).end_offsets.items()}
    assert offsets == {"an_event": 1, "click": 0}
    again.close()
    assert sink.ids == (ids(FIRST, SECOND, CLICKS[0]) if mode == "Drain" else ids(FIRST, SECOND))


def test_a_version_that_gives_names_to_folders_is_refused(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """Spark looks for what it has read of a folder under the name, and would read all of it anew, or none of what came since."""
    events, clicks, sink = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks"), Batches()
    events.add(FIRST, SECOND)
    clicks.add(CLICKS[0])
    drained(application, counted(events.stream().unionByName(clicks.stream())), sink, read_all)
    events.add(THIRD)
    with naming(spark):
        app = application()
        named = events.stream(source="an_event").unionByName(clicks.stream(source="click"))
        with pytest.raises(EmptyStateError, match="gives its sources names: an_event, click; leave them out, or"):
            app.start(counted(named), sink)
        app.close()
    drained(application, counted(events.stream().unionByName(clicks.stream()), size=25), sink, read_all)
    assert sink.ids == ids(FIRST, SECOND, THIRD, CLICKS[0])


@pytest.mark.usefixtures("names_allowed")
def test_sources_with_names_catch_up(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """The offset log has them in another order than the plan; a next version has one more, which the log does not have at first."""
    events, clicks, sink = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks"), Batches()
    events.add(FIRST, SECOND)
    clicks.add(*CLICKS)
    ticks = spark.readStream.name("tick").format("rate").load().withWatermark("timestamp", "12 seconds")
    both = ticks.selectExpr("-1 - value AS id", "timestamp AS at").unionByName(events.stream(source="event").select("id", "at"))
    for frame, names in ((both, {"tick", "event"}), (both.unionByName(clicks.stream(source="click").select("id", "at")), {"click"})):
        app = application()
        app.start(counted(frame), sink)
        assert names <= set(app.drain(mode="CatchUp").end_offsets)
        app.close()
    assert Counter({number: times for number, times in sink.ids.items() if number >= 0}) == ids(FIRST, SECOND, *CLICKS)


def test_a_folder_and_rate_micro_batch(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    generated = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 7).option("advanceMillisPerBatch", 5000)
    ticks = generated.load().withWatermark("timestamp", "12 seconds").selectExpr("value + 1000 AS id", "timestamp AS at")
    union = counted(events.stream().select("id", "at").unionByName(ticks))
    for added in (SECOND, THIRD):
        report = drained(application, union, sink, batches(3))
        ticked = max(json.loads(offset).get("offset", 0) for offset in report.end_offsets.values())
        found = sink.ids
        assert Counter({number: times for number, times in found.items() if number >= 1000}) == Counter(range(1000, 1000 + ticked))
        events.add(added)
    assert Counter({number: times for number, times in found.items() if number < 1000}) == ids(FIRST, SECOND)


@pytest.mark.soak
def test_rate(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """The source counts on from the time that it remembers in the checkpoint, which a reseeded one keeps."""
    sink = Batches()
    rate = spark.readStream.format("rate").option("rowsPerSecond", 50).load().withWatermark("timestamp", "1 second")
    last = 0
    for _ in range(2):
        report = drained(application, counted(rate, "value", "timestamp", 2), sink, batches(1))
        (seconds,) = report.end_offsets.values()
        assert int(seconds) > last
        last = int(seconds)
        assert sink.ids == Counter(range(50 * last))


def test_socket(application: Begin, spark: SparkSession) -> None:
    sink = Batches()
    with lines_served([str(number) for number in range(40)]) as (host, port):
        lines = spark.readStream.format("socket").option("host", host).option("port", port).option("includeTimestamp", "true").load()
        timed = lines.withWatermark("timestamp", "10 minutes").withColumn("id", F.col("value").cast("long"))
        drained(application, counted(timed, at="timestamp"), sink, read(40))
    assert sink.ids == Counter(range(40))
    assert sink.panes == 1


def test_static_side_inputs_are_complete_in_the_drain_pane(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """A static table joined behind the windows is read by the flush batch too, whole and as it was."""
    names = tmp_path / "names"
    spark.createDataFrame([(key, f"name of {key}") for key in "abc"], "key STRING, name STRING").write.parquet(str(names))
    before = {path.name: path.stat().st_mtime_ns for path in names.iterdir()}
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST, SECOND)
    windows = events.stream().groupBy(F.window("at", "10 seconds"), "key").agg(F.collect_list("id").alias("ids"))
    drained(application, windows.join(spark.read.parquet(str(names)), "key").select("key", "name", "ids"), sink, read_all)
    assert sink.ids == ids(FIRST, SECOND)
    assert {(key, name) for key, name, _ in sink.drained} == {(key, f"name of {key}") for key in "abc"}
    assert {path.name: path.stat().st_mtime_ns for path in names.iterdir()} == before


@pytest.mark.soak
def test_with_a_shuffle_and_requested_before_the_start(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """Whatever the first run had read when the waiting request caught it, two runs count each event once."""
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST, SECOND, THIRD)
    first = application()
    drain_id = first.ask()
    query = first.start(counted(events.stream()), sink)
    with first.user_waits():
        first.answer(drain_id, DrainState.DRAINED)
    assert not query._jsq.isActive()
    first.finish(drain_id)
    drained(application, counted(events.stream(), size=25), sink, lambda query: query.processAllAvailable())
    assert sink.ids == ids(FIRST, SECOND, THIRD)


def test_duplicates_across_the_cut(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """The memory of dropDuplicates: forgotten by a drain that accepts it, kept by mode Stop."""
    for mode, passes in (("Drain", 2), ("Stop", 1)):
        events, sink = Input(spark, tmp_path / mode), Batches()
        frame = events.stream().dropDuplicates(["id"]).select("id")
        events.add(FIRST, FIRST)
        app = application()
        read_all(app.start(frame, sink, name=mode))
        app.drain(mode, stateLossPolicy="Accept")
        app.close()
        events.add(FIRST[:6] + SECOND)
        app = application()
        read_all(app.start(frame, sink, name=mode), 18)
        app.close()
        assert Counter(sink.rows) == Counter({(event.id,): passes if event in FIRST[:6] else 1 for event in FIRST + SECOND}), mode
