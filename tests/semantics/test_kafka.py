"""Kafka under a drain: each record is counted once, whatever happens to the topic meanwhile."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from spark_drain_agent import generation
from spark_drain_agent.drain import after_commit
from spark_drain_store import DrainState

from tests.semantics.topics import MAX_OFFSETS, Topic, events, kafka, unlimited
from tests.semantics.warm import Application, Batches, read_all, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[[], Application]


def windows(frame: DataFrame, seconds: int = 10) -> DataFrame:
    return frame.groupBy(F.window("at", f"{seconds} seconds")).agg(F.collect_list("id").alias("ids"), F.count("*").alias("count"))


def test_partitions_are_added_between_two_versions(application: Begin, topic: Topic) -> None:
    """The new partitions have no end offset: the incompatible version reads them from their beginning."""
    sink = Batches()
    topic.add(60)
    app = application()
    read_all(app.start(windows(topic.stream()).select("ids"), sink))
    report = app.drain()
    app.close()
    assert list(report.end_offsets.values()) == [f'{{"{topic.name}":{{"0":30,"1":30}}}}']
    topic.grow()
    topic.add(60)
    app = application()
    read_all(app.start(windows(topic.stream(), 25).select("ids", "count"), sink))
    app.drain()
    assert sink.ids == Counter(range(120))


def test_end_offsets_are_starting_offsets(application: Begin, topic: Topic) -> None:
    """A version with a checkpoint of its own begins with the reported offsets, at the first record that was not counted."""
    sink = Batches()
    topic.add(50)
    app = application()
    read_all(app.start(windows(topic.stream()).select("ids"), sink, name="old"))
    (ended,) = app.drain().end_offsets.values()
    app.close()
    topic.add(50)
    app = application()
    read_all(app.start(windows(topic.stream(ended)).select("ids"), sink, name="new"))
    app.drain()
    assert sink.ids == Counter(range(100))


@pytest.mark.parametrize("mode", ["Drain", pytest.param("CatchUp", marks=pytest.mark.soak)])
def test_an_empty_topic(application: Begin, topic: Topic, mode: str) -> None:
    sink = Batches()
    app = application()
    read_all(app.start(windows(topic.stream()).select("ids"), sink))
    report = app.drain(mode)
    assert (report.state, report.last_batch_id) == ("Drained", 0)
    app.close()
    topic.add(30)
    app = application()
    read_all(app.start(windows(topic.stream()).select("ids"), sink))
    app.drain()
    assert sink.ids == Counter(range(30))


@pytest.mark.soak
def test_order_within_a_partition_is_kept(application: Begin, topic: Topic) -> None:
    """One batch after the other, up to the last one before the cut and from the first one after it."""
    sink = Batches()
    for mode in ("Drain", "CatchUp"):
        topic.add(60)
        app = application()
        app.start(kafka(topic.spark, topic.broker, topic.name).select("partition", "offset"), sink)
        app.drain(mode)
        app.close()
    assert len(sink.rows) >= topic.events
    for partition in range(topic.partitions):
        assert [offset for number, offset in sink.rows if number == partition] == list(range(topic.events // topic.partitions))


@dataclass
class Held(Batches):
    """A sink whose first batch waits to be let go."""

    begun: threading.Event = field(default_factory=threading.Event)
    free: threading.Event = field(default_factory=threading.Event)
    sizes: list[int] = field(default_factory=list)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        self.begun.set()
        assert self.free.wait(60)
        before = len(self.written)
        super().__call__(batch, batch_id)
        self.sizes.append(len(self.written) - before)


def test_catching_up_reads_what_was_there_in_batches_of_its_own_size(application: Begin, topic: Topic) -> None:
    """Partitions and records that came before the request are waited for; those that come later are not."""
    sink = Held()
    topic.add(60)
    app = application()
    app.start(topic.stream(**{"kafka.metadata.max.age.ms": "500"}).select("id"), sink)
    assert sink.begun.wait(60)
    topic.grow()
    topic.add(60)
    with app.user_waits():
        asked = app.ask("CatchUp")
        until(lambda: (report := app.report(asked)) is not None and report.reason == "CatchingUp", "the catching up to begin")
        wanted = topic.events
        topic.add(400)
        sink.free.set()
        (report,) = app.answer(asked, DrainState.DRAINED).queries
    app.finish(asked)
    found = Counter(number for (number,) in sink.rows)
    assert set(range(wanted)) <= set(found)
    assert set(found.values()) == {1}
    assert len(found) < topic.events
    assert max(sink.sizes) <= MAX_OFFSETS
    (ended,) = report.end_offsets.values()
    app.close()
    app = application()
    read_all(app.start(topic.stream().select("id"), sink))
    app.drain()
    assert Counter(number for (number,) in sink.rows) == Counter(range(topic.events)), ended


def test_a_topic_between_two_queries(application: Begin, topic: Topic, tmp_path: Path) -> None:
    """The writer is drained first; what its flush writes to the topic goes through the reader's flush."""
    between, sink = Topic(topic.spark, topic.broker, f"{topic.name}-between"), Batches()
    rows = "window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, ids ARRAY<LONG>, at TIMESTAMP"
    for size in (10, 25):
        topic.add(60)
        app = application()
        second = events(kafka(topic.spark, topic.broker, between.name), rows).groupBy(F.window("at", f"{6 * size} seconds"))
        flat = second.agg(F.flatten(F.collect_list("ids")).alias("ids")).select("ids")
        reader = app.start(flat, sink, name="reader")
        first = windows(topic.stream(), size).withColumn("at", F.col("window.start"))
        writer = first.select(F.to_json(F.struct("window", "ids", "at")).alias("value")).writeStream.format("kafka").queryName("writer")
        writer = writer.option("kafka.bootstrap.servers", topic.broker.address).option("topic", between.name)
        app.launch(writer.option("checkpointLocation", f"{app.base}/writer")).processAllAvailable()
        with app.asked(DrainState.DRAINED) as report:
            depends_on = {query.name: query.depends_on for query in report.queries}
        assert depends_on == {"reader": (f"file:{app.base}/writer",), "writer": ()}
        assert not reader._jsq.isActive()
        app.close()
        assert sink.ids == Counter(range(topic.events))


def test_rows_that_come_again_are_told_by_their_generation(application: Begin, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flush fails between the sink's write and its commit, as at a crash; the next version writes the rest of the open window."""
    monkeypatch.setattr(after_commit, "_RETRY_SECONDS", (0.2,))
    out = Topic(topic.spark, topic.broker, f"{topic.name}-out")
    drained = F.udf(lambda _: generation(), "int")("window.start").alias("generation")
    for keys in ((), ("source",)):
        topic.add(33)
        app = application()
        counted = topic.stream().withColumn("source", F.lit("any")).groupBy(F.window("at", "10 seconds"), *keys)
        rows = counted.agg(F.sort_array(F.collect_list("id")).alias("ids")).withColumn("at", F.current_timestamp())
        writer = rows.select(F.to_json(F.struct("window", "ids", "at", drained)).alias("value")).writeStream.format("kafka").queryName("q")
        writer = writer.option("kafka.bootstrap.servers", topic.broker.address).option("topic", out.name)
        writer = writer.option("checkpointLocation", f"{app.base}/q")
        read_all(app.launch(writer))
        newest = max(int(path.name) for path in Path(f"{app.base}/q/commits").glob("[0-9]*"))
        in_the_way = Path(f"{app.base}/q/commits/{newest + 1}")
        if not keys:
            in_the_way.mkdir()
        with app.user_waits():
            asked = app.ask()
            app.answer(asked, DrainState.DRAINED, DrainState.STALLED)
            if in_the_way.is_dir():
                in_the_way.rmdir()
            app.answer(asked, DrainState.DRAINED, patient=True)
        app.finish(asked)
        app.close()
    written = topic.broker.read(out.name)
    times = Counter(json.dumps(row) for row in written)
    assert set(times.values()) == {1, 2}, "what comes again is equal to the last byte"
    kept = {(row["window"]["start"], row["generation"]): row["ids"] for row in written}
    assert Counter(number for ids in kept.values() for number in ids) == Counter(range(66))
    by_window = {row["window"]["start"]: row["ids"] for row in written}
    assert sum(map(len, by_window.values())) < 66, "the first part of the window at the cut is lost to a reader that keys by window"


@pytest.mark.soak
def test_catching_up_with_records_that_the_source_holds_back(application: Begin, topic: Topic) -> None:
    """Fewer records than ``minOffsetsPerTrigger`` come after ``maxTriggerDelay``, and are waited for."""
    sink = Batches()
    topic.add(60)
    app = application()
    held_back = {"minOffsetsPerTrigger": "1000", "maxTriggerDelay": "10s"}
    read_all(app.start(windows(events(unlimited(topic.spark, topic.broker, topic.name, **held_back))).select("ids"), sink), 60)
    topic.add(30)
    app.drain("CatchUp")
    assert sink.ids == Counter(range(90))
