"""Queries in real-time mode, from Kafka to Kafka: they are cut at the end of a batch, while records keep coming."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from spark_drain_store import DrainState

from tests.semantics.topics import Topic, unlimited
from tests.semantics.warm import Application, Event, Input, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

Begin = Callable[[], Application]
_BATCH = "5 seconds"


@contextmanager
def fed(topic: Topic) -> Iterator[None]:
    """Write records for the time of this block."""
    enough = threading.Event()

    def feed() -> None:
        while not enough.wait(0.05):
            topic.add(10)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        enough.set()
        feeder.join()


class Copy:
    """An application that copies a topic, and what has arrived in the other one."""

    def __init__(self, topic: Topic) -> None:
        self.topic, self.output = topic, Topic(topic.spark, topic.broker, f"{topic.name}-copy")

    def writer(self, app: Application, version: str, name: str = "copy") -> DataStreamWriter:
        """Return the query, not started yet."""
        read = unlimited(self.topic.spark, self.topic.broker, self.topic.name)
        parsed = read.select(F.from_json(F.col("value").cast("string"), "id LONG").alias("event"))
        written = parsed.select(F.to_json(F.struct("event.id", F.lit(version).alias("version"))).alias("value")).writeStream
        written = written.format("kafka").option("kafka.bootstrap.servers", self.topic.broker.address).option("topic", self.output.name)
        return (
            written.queryName(name)
            .outputMode("update")
            .options(asyncProgressTrackingEnabled="false", checkpointLocation=f"{app.base}/{name}")
        )

    def starts(self, app: Application, version: str, real_time: bool = True) -> StreamingQuery:
        """Start it, and wait until it copies."""
        writer = self.writer(app, version)
        query = app.launch(writer.trigger(realTime=_BATCH) if real_time else writer)  # type: ignore[call-overload]
        until(lambda: version in self.versions() or _failed(query), f"{version} copies")
        return query

    def found(self) -> list[dict[str, object]]:
        """Return the copied records."""
        return self.topic.broker.read(self.output.name)

    def versions(self) -> set[object]:
        """Return the versions that have written."""
        return {record["version"] for record in self.found()}

    def all_arrive(self) -> None:
        """Wait until all that was written has arrived, and check that each has once."""
        until(lambda: len(self.found()) >= self.topic.events, "all records to be copied")
        assert Counter(record["id"] for record in self.found()) == Counter(range(self.topic.events))


def _failed(query: StreamingQuery) -> bool:
    if (error := query.exception()) is not None:
        raise AssertionError(str(error))
    return False


@pytest.mark.parametrize(
    ("mode", "next_in_real_time"),
    [("Drain", True), *(pytest.param(*each, marks=pytest.mark.soak) for each in (("Stop", False), ("CatchUp", True)))],
)
def test_a_query_in_real_time_mode_is_cut_between_two_batches(application: Begin, topic: Topic, mode: str, next_in_real_time: bool) -> None:
    copy = Copy(topic)
    with fed(topic):
        app = application()
        copy.starts(app, "v1")
        report = app.drain(mode)
        copied = len(copy.found())
        app.close()
        assert len(copy.found()) == copied, "it wrote after it had drained"
        app = application()
        copy.starts(app, "v2", next_in_real_time)
    copy.all_arrive()
    ended = sum(json.loads(*report.end_offsets.values())[topic.name].values())
    assert Counter(record["version"] for record in copy.found())["v1"] == ended == copied


def test_a_query_in_real_time_mode_that_is_stopped_in_its_batch_is_left_out(application: Begin, topic: Topic) -> None:
    copy = Copy(topic)
    with fed(topic):
        app = application()
        query = copy.starts(app, "v1")
        with app.user_waits():
            asked = app.ask()
            app.answer(asked, DrainState.STOPPING)
            query.stop()
            report = app.answer(asked, DrainState.DRAINED)
        assert report.message.startswith("0 queries drained; the application had stopped query 'copy' itself")


@contextmanager
def held(app: Application, copy: Copy, folder: Path) -> Iterator[tuple[StreamingQuery, str, threading.Event]]:
    """Run the copy beside a query in the middle of a batch, which a drain waits for while it holds the copy."""
    begun, free = threading.Event(), threading.Event()

    def slow(_: DataFrame, __: int) -> None:
        begun.set()
        assert free.wait(120)

    source = Input(copy.topic.spark, folder)
    source.add([Event(0, "a", 0)])
    query = copy.starts(app, "v1")
    app.start(source.stream(None), slow, name="slow")
    assert begun.wait(60)
    with app.user_waits():
        asked = app.ask()
        until(lambda: "slow" in (((report := app.report(asked)) is not None and report.message) or ""), "the copy to be held")
        try:
            yield query, asked, free
        finally:
            free.set()


def test_a_query_in_real_time_mode_reads_on_after_a_drain_that_is_withdrawn(application: Begin, topic: Topic, tmp_path: Path) -> None:
    copy = Copy(topic)
    with fed(topic):
        app = application()
        with held(app, copy, tmp_path / "slow") as (query, asked, _):
            standing = len(copy.found())
            assert len(copy.found()) == standing < topic.events
            app.finish(asked)
            until(lambda: len(copy.found()) > standing or _failed(query), "it to read on")
    copy.all_arrive()


@pytest.mark.soak
def test_a_query_in_real_time_mode_that_is_held_can_be_stopped(application: Begin, topic: Topic, tmp_path: Path) -> None:
    """`stop()` waits for the query's thread, which waits for the drain."""
    copy = Copy(topic)
    with fed(topic):
        app = application()
        with held(app, copy, tmp_path / "slow") as (query, asked, free):
            stopping = threading.Thread(target=query.stop)
            stopping.start()
            stopping.join(30)
            assert not stopping.is_alive()
            free.set()
            report = app.answer(asked, DrainState.DRAINED)
        assert [item.name for item in report.queries] == ["slow"]
        app.close()
        app = application()
        copy.starts(app, "v2")
    copy.all_arrive()
