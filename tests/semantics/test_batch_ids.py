"""Batch ids that go on across a drain: an incompatible version under the ids that the sink has not seen."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.checkpoint.empty_state import EmptyStateError

from tests.semantics.operator_table import EVENTS
from tests.semantics.warm import PROVIDERS, Application, Batches, Event, Input, read_all, until
from tests.support.own_jvm import session_confs

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


@pytest.mark.parametrize("provider", ["hdfs", pytest.param("rocksdb", marks=pytest.mark.soak)])
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


@pytest.mark.soak
def test_a_sink_that_skips_ids_it_has_seen_is_written_to_again_after_another_one(
    application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    """The version between writes with a sink that keeps no ids; its own may not start again all the same."""
    events, sink = Input(spark, tmp_path / "events"), Idempotent()
    for number, skipping in enumerate((True, False, True)):
        events.add(EVENTS[8 * number : 8 * number + 4], EVENTS[8 * number + 4 : 8 * number + 8])
        app, frame = application(), windows(events, seconds=10 + number)
        if skipping:
            read_all(app.start(frame, sink))
        else:
            writer = frame.writeStream.format("noop").queryName("q").option("checkpointLocation", f"{app.base}/q")
            read_all(app.launch(writer))
        app.drain()
        app.close()
    assert sink.ids == Counter(event.id for event in (*EVENTS[:8], *EVENTS[16:]))
    assert sink.refused == []


@pytest.mark.parametrize("taken", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_first_batch_that_fails_where_ids_start_again(taken: bool, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """Spark does not look at the entry before batch 0 when it plans that again: it would read the sources from their beginning.

    A sink that skips what it has seen under an id would lose what has come since, were another batch planned in its place.
    """
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(EVENTS[:8])
    app = application()
    read_all(app.start(windows(events, "key"), sink))
    app.drain(checkpoint__policy="Reseed", checkpoint__acceptBatchIdRestart="true")
    app.close()

    def fails(batch: DataFrame, batch_id: int) -> None:
        if taken:
            sink(batch, batch_id)
        raise RuntimeError("out of milk")

    events.add(EVENTS[8:12])
    app = application()
    failing = app.start(windows(events), fails)
    with pytest.raises(StreamingQueryException, match="out of milk"):
        failing.awaitTermination()
    checkpoint = tmp_path / "checkpoints/q"
    assert (checkpoint / "offsets/0").exists()
    app.close()
    events.add(EVENTS[12:])
    app = application()
    with pytest.raises(EmptyStateError, match="which only the sink knows"):
        app.start(windows(events), sink)
    if taken:
        (checkpoint / "commits/0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    else:
        (checkpoint / "offsets/0").unlink()
    read_all(app.start(windows(events), sink))
    app.drain()
    assert sink.ids == Counter(event.id for event in EVENTS)


def test_a_version_whose_plan_is_another_one_in_each_start_goes_on_at_its_owners_word(
    application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    """Its first batch was interrupted when a sink that takes no batch twice had it; the word is for that batch, and no later one."""
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(EVENTS[:8])
    app = application()
    read_all(app.start(windows(events, "key"), sink))
    app.drain()
    app.close()

    def once(batch: DataFrame, batch_id: int) -> None:
        if batch_id in taken:
            batch.collect()  # Spark 4.2 wants all state written
        else:
            taken.append(batch_id)
            sink(batch, batch_id)
        if len(taken) == 1:
            taken.append(-1)
            raise RuntimeError("out of milk")

    def unsteady(start: int) -> DataFrame:
        return windows(events).where(F.lit(start) > 0)

    taken: list[int] = []
    events.add(EVENTS[8:])
    app = application()
    failing = app.start(unsteady(1), once)
    with pytest.raises(StreamingQueryException, match="out of milk"):
        failing.awaitTermination()
    app.close()
    app = application()
    with pytest.raises(EmptyStateError, match="another version was interrupted") as caught:
        app.start(unsteady(2), once)
    conf, _, word = str(caught.value).rpartition(", ")[2].removesuffix(" says so").partition("=")
    with session_confs(spark, {conf: word}):
        read_all(app.start(unsteady(3), once))
    app.drain()
    assert sink.ids == Counter(event.id for event in EVENTS)


def test_the_next_version_writes_files_to_another_folder(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads the entries of a file sink's log from the first one on; a folder of other batches is refused by name."""
    events = Input(spark, tmp_path / "events")
    found: Counter[int] = Counter()

    def launch(app: Application, number: int, folder: Path) -> StreamingQuery:
        writer = windows(events, seconds=10 + number).writeStream.format("json").queryName("q").option("path", str(folder))
        return app.launch(writer.option("checkpointLocation", f"{app.base}/q"))

    with session_confs(spark, {"spark.sql.streaming.fileSink.log.compactInterval": "3"}):
        for number in range(4):
            events.add(*([event] for event in EVENTS[6 * number : 6 * number + 6]))
            app = application()
            if number == 1:
                with pytest.raises(EmptyStateError, match=r"output folder .*/other ends with batch 0.*write to another folder"):
                    launch(app, number, tmp_path / "other")
            read_all(launch(app, number, tmp_path / f"out{number}"))
            app.drain()
            app.close()
            for row in spark.read.json(str(tmp_path / f"out{number}")).collect():
                found.update(row.ids)
            if number == 0:
                (tmp_path / "other/_spark_metadata").mkdir(parents=True)
                (tmp_path / "other/_spark_metadata/0").write_text("v1")
    assert found == Counter(event.id for event in EVENTS)


@pytest.mark.soak
def test_the_next_version_writes_files_to_a_table(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """As to another folder: the log begins with entries of the batches that the table never saw; one that is not there yet is refused."""
    events = Input(spark, tmp_path / "events")
    found: Counter[int] = Counter()
    with session_confs(spark, {"spark.sql.streaming.fileSink.log.compactInterval": "3"}):
        for number in range(2):
            events.add(*([event] for event in EVENTS[6 * number : 6 * number + 6]))
            app = application()
            writer = windows(events, seconds=10 + number).writeStream.format("parquet").queryName("q")
            writer = writer.option("checkpointLocation", f"{app.base}/q")
            if number == 0:
                read_all(app.launch(writer.option("path", str(tmp_path / "first"))))
            else:
                with pytest.raises(EmptyStateError, match=r"table .*second`? does not exist yet.*create it first"):
                    app.launch(writer, "second")
                spark.sql(f"CREATE TABLE second (ids ARRAY<BIGINT>) USING parquet LOCATION '{tmp_path / 'second'}'")
                read_all(app.launch(writer, "second"))
            app.drain()
            app.close()
    for folder in ("first", "second"):
        for row in spark.read.parquet(str(tmp_path / folder)).collect():
            found.update(row.ids)
    assert found == Counter(event.id for event in EVENTS[:12])
    spark.sql("DROP TABLE second")


@pytest.mark.parametrize(
    ("place", "known"),
    [
        pytest.param("absolute", True, id="absolute-known"),
        pytest.param("relative", False, id="relative-unknown", marks=pytest.mark.soak),
        pytest.param("absolute", False, id="absolute-unknown", marks=pytest.mark.soak),
        pytest.param("relative", True, id="relative-known", marks=pytest.mark.soak),
    ],
)
def test_a_table_at_a_path_of_its_own(application: Begin, spark: SparkSession, tmp_path: Path, place: str, known: bool) -> None:
    """A catalog in memory does not know it any more in the next driver: Spark makes the table anew where the files are."""
    events = Input(spark, tmp_path / "events")
    found: Counter[int] = Counter()
    path = str(tmp_path / "the table") if place == "absolute" else f"the table of {tmp_path.name}"
    for number in range(3):
        events.add(*([event] for event in EVENTS[6 * number : 6 * number + 6]))
        app = application()
        writer = windows(events, seconds=10 + number).writeStream.format("parquet").queryName("q").option("path", path)
        read_all(app.launch(writer.option("checkpointLocation", f"{app.base}/q"), "placed"))
        app.drain()
        app.close()
        found = Counter(number for row in spark.table("placed").collect() for number in row.ids)
        if number == 2 or not known:
            spark.sql("DROP TABLE placed")
    assert found == Counter(event.id for event in EVENTS[:18])


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
    with session_confs(spark, CHANGED):
        read_all(app.start(windows(events, "key"), sink))
        app.drain()
    assert sink.ids == Counter(event.id for event in EVENTS)
    assert sink.refused == []
    newest = max((tmp_path / "checkpoints/q/offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    pinned = json.loads(newest.read_text().splitlines()[1])["conf"]
    assert {conf: pinned[conf] for conf in CHANGED} == CHANGED


@pytest.mark.parametrize("name", ["booked", "at"], ids=["another column", "the same name"])
def test_an_event_time_that_lags_behind_that_of_the_version_before(
    name: str, application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    """At the first version's watermark every record of the second one would be late."""
    events, sink = Input(spark, tmp_path / "events"), Idempotent()
    events.add(EVENTS[:4], EVENTS[4:8])
    app = application()
    read_all(app.start(windows(events, "key"), sink))
    app.drain()
    app.close()
    events.add(EVENTS[8:12], EVENTS[12:])
    app = application()
    lagging = events.stream(watermark=None).withColumn(name, F.expr("at - INTERVAL 1 DAY")).withWatermark(name, "12 seconds")
    read_all(app.start(lagging.groupBy(F.window(name, "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids"), sink))
    app.drain()
    assert sink.ids == Counter(event.id for event in EVENTS)


def test_several_watermarks_that_become_one_in_another_way(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """The first version's watermark is that of the faster stream; to the second one the slower stream would be late as a whole."""
    fast, slow, sink = Input(spark, tmp_path / "fast"), Input(spark, tmp_path / "slow"), Idempotent()
    early = [Event(event.id + 1000, event.key, event.at) for event in EVENTS]
    late = [Event(event.id, event.key, event.at + 86_400) for event in EVENTS]
    counted = []
    for policy, part in (("max", slice(8)), ("min", slice(8, None))):
        fast.add(late[part])
        if policy == "min":
            slow.add(early[part])
            counted = early[part]
        else:
            slow.add(early[:1])
        app = application()
        with session_confs(spark, {"spark.sql.streaming.multipleWatermarkPolicy": policy}):
            both = fast.stream().union(slow.stream("20 seconds"))
            read_all(app.start(both.groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids"), sink))
            app.drain()
        app.close()
    assert {event.id for event in counted} <= set(sink.ids)
    assert sink.ids == Counter([*(event.id for event in late), early[0].id, *(event.id for event in counted)])


def test_an_event_time_that_is_read_in_another_format(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """The first version took days for months: to the second one, which does not, every record would be late."""
    folder, sink = tmp_path / "events", Idempotent()
    folder.mkdir()
    for number, form in enumerate(("MM/dd/yyyy HH:mm:ss", "dd/MM/yyyy HH:mm:ss")):
        lines = [json.dumps({"id": 10 * number + second, "at": f"05/03/2026 10:00:{second:02}"}) for second in range(10)]
        (folder / f".{number}").write_text("\n".join(lines))
        (folder / f".{number}").rename(folder / f"{number}.json")
        app = application()
        read = spark.readStream.schema("id LONG, at TIMESTAMP").option("timestampFormat", form).json(str(folder))
        grouped = read.withWatermark("at", "12 seconds").groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids"))
        read_all(app.start(grouped.select("ids"), sink))
        app.drain()
        app.close()
    assert sink.ids == Counter(range(20))


def _event_time(lag: timedelta) -> Callable[[DataFrame], Column]:
    def made(_: DataFrame) -> Column:
        return F.udf(lambda at: at - lag, "timestamp")("at")

    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda frame: frame["at"], lambda frame: frame["at"] - F.expr("INTERVAL 1 DAY")),
        (_event_time(timedelta(0)), _event_time(timedelta(1))),
    ],
    ids=["beyond the fields that Spark shows", "in a function"],
)
def test_an_event_time_that_is_made_otherwise_where_spark_does_not_show_it(
    before: Callable[[DataFrame], Column], after: Callable[[DataFrame], Column], application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    events, sink = Input(spark, tmp_path / "events"), Idempotent()
    for made, half in ((before, EVENTS[:8]), (after, EVENTS[8:])):
        events.add(half[:4], half[4:])
        app = application()
        wide = events.stream(watermark=None).select("*", *(F.lit(number).alias(f"field{number}") for number in range(40)))
        timed = wide.withColumn("time", made(wide)).withWatermark("time", "12 seconds")
        read_all(app.start(timed.groupBy(F.window("time", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids"), sink))
        app.drain()
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)


def test_an_event_time_of_which_something_else_says_how_it_is_made(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """A file, a table or a service that a function asks: nothing of the query is another than before."""
    events, sink, days = Input(spark, tmp_path / "events"), Idempotent(), tmp_path / "days"
    for lag, half in enumerate((EVENTS[:8], EVENTS[8:])):
        days.write_text(str(lag))
        events.add(half[:4], half[4:])
        app = application()
        made = F.udf(lambda at: at - timedelta(int(days.read_text())), "timestamp")("at")
        timed = events.stream(watermark=None).withColumn("time", made).withWatermark("time", "12 seconds")
        read_all(app.start(timed.groupBy(F.window("time", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids"), sink))
        app.drain()
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)


@pytest.mark.parametrize("table", ["rows", "file"])
def test_an_event_time_that_a_table_helps_to_make(table: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """Nothing of the plan is another than before, but for rows that it does not show."""
    events, sink, file = Input(spark, tmp_path / "events"), Idempotent(), tmp_path / "days.csv"
    for lag, half in enumerate((EVENTS[:8], EVENTS[8:])):
        file.write_text(f"{lag}\n")
        rows = spark.createDataFrame(spark.sparkContext.parallelize([(lag,)], 1), "days int")
        days = rows if table == "rows" else spark.read.schema("days int").csv(str(file))
        events.add(half[:4], half[4:])
        app = application()
        made = events.stream(watermark=None).crossJoin(days).withColumn("time", F.expr("timestampadd(DAY, -days, at)"))
        windows = made.withWatermark("time", "12 seconds").groupBy(F.window("time", "10 seconds"))
        read_all(app.start(windows.agg(F.collect_list("id").alias("ids")).select("ids"), sink))
        app.drain()
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)


def test_a_join_in_a_state_format_that_is_not_known(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """It is refused by name, with the way out, and the checkpoint is as it was."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS["rocksdb"])
    events, clicks, sink = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks"), Idempotent()
    events.add(EVENTS[:8])
    clicks.add(EVENTS[:8])
    app = application()
    both = events.stream().union(clicks.stream())
    read_all(app.start(both.groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids"), sink))
    app.drain()
    app.close()
    events.add(EVENTS[8:])
    clicks.add(EVENTS[8:])
    pairs = events.stream().join(clicks.stream(), ["id", "key", "at"]).select(F.array("id").alias("ids"))
    with (
        session_confs(spark, {"spark.sql.streaming.join.stateFormatVersion": "3"}),
        pytest.raises(EmptyStateError, match="start it with 2"),
    ):
        application().start(pairs, sink)
    app = application()
    read_all(app.start(pairs, sink))
    app.drain(stateLossPolicy="Accept")
    assert sink.ids == Counter({event.id: 2 if event in EVENTS[:8] else 1 for event in EVENTS})


def test_a_query_whose_join_is_in_that_format_already(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """Its next start has the same confs, and could make no empty state: it goes on with the state as the flush has left it."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS["rocksdb"])
    events, clicks, sink = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks"), Idempotent()
    with session_confs(spark, {"spark.sql.streaming.join.stateFormatVersion": "3"}):
        for some in (EVENTS[:8], EVENTS[8:]):
            events.add(some)
            clicks.add(some)
            app = application()
            read_all(app.start(events.stream().join(clicks.stream(), ["id", "key", "at"]).select(F.array("id").alias("ids")), sink))
            assert app.drain(stateLossPolicy="Accept").checkpoint_policy == "Continue"
            app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)


class Slow:
    """A sink that replaces what it has under a batch id, and whose first batch has written its state long before it is committed."""

    def __init__(self) -> None:
        self.batches: dict[int, Batches] = {}
        self.entered, self.go_on = threading.Event(), threading.Event()

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = Batches()
        self.batches[batch_id](batch, batch_id)
        self.entered.set()
        self.go_on.wait(60)


@pytest.mark.parametrize("seconds", [pytest.param(7, id="the same version", marks=pytest.mark.soak), pytest.param(9, id="another version")])
def test_a_second_start_during_the_first_batch(seconds: int, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """Spark stops the first one: what that has written stays, until it is known that the batch was not committed."""
    events, sink, slow = Input(spark, tmp_path / "events"), Batches(), Slow()
    events.add(EVENTS[:8])
    app = application()
    read_all(app.start(windows(events, "key"), sink))
    app.drain()
    app.close()
    events.add(EVENTS[8:12], EVENTS[12:])
    app = application()

    def start(seconds: int) -> StreamingQuery:
        writer = windows(events, seconds=seconds).writeStream.foreachBatch(slow).outputMode("append")
        return app.launch(writer.option("checkpointLocation", f"{tmp_path}/checkpoints/q"))

    first = start(7)
    assert slow.entered.wait(60)
    lease = tmp_path / "checkpoints/q/_drain/lease"
    assert json.loads(lease.read_text())["run"] == spark.sparkContext.applicationId, "another driver would prepare its own start"
    if seconds == 7:
        threading.Timer(2, slow.go_on.set).start()  # the second start waits for the first one's end
        first = start(7)
    else:
        with pytest.raises(EmptyStateError, match="another version is running its first batch"):
            start(seconds)
        assert first.isActive
        slow.go_on.set()
    read_all(first)
    until(lambda: not lease.exists(), "the lease to be released")
    app.drain()
    assert sum((batch.ids for batch in slow.batches.values()), sink.ids) == Counter(event.id for event in EVENTS)


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
