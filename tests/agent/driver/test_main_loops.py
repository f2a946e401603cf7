"""What main may do with its queries: start them again when they end, wait for any of several, stop Spark and make another session."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import QueryTerminatedEvent
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.checkpoint.empty_state import EmptyStateError
from spark_drain_agent.clock import monotonic
from spark_drain_agent.driver import listener_hooks, signals
from spark_drain_agent.driver.held_query import HeldQuery
from spark_drain_agent.gate import Phase
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.late_start import LateStart, starts_late
from spark_drain_store import DrainNotification, DrainReport, DrainState, QueryReport, open_channel

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.driver.streams import Listener, Started, in_thread, listening, writer
from tests.agent.harness import Feed, eventually, exactly, ids_in
from tests.agent.warm import Warm
from tests.support.own_jvm import session_confs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def start(warm: Warm, base: Path, name: str = "looped", *, bounded: bool = False) -> StreamingQuery:
    made = counted(read(warm.session, base)).writeStream.queryName(name).option("checkpointLocation", str(base / "checkpoints" / name))
    made = made.trigger(availableNow=True) if bounded else made
    return made.foreachBatch(to_files(base / "out" / name, block=base / "block")).start()


class Main:
    """The application's main thread, in a loop that starts its query whenever it does not run."""

    def __init__(self, begin: Callable[[], StreamingQuery], *, polls: bool) -> None:
        self._begin, self._polls = begin, polls
        self._leave = threading.Event()
        self.queries: list[StreamingQuery] = []
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while not self._leave.is_set():
            if not self._polls:
                self.queries.append(self._begin())
                self.queries[-1].awaitTermination()
            elif not self.queries or not self.queries[-1].isActive:
                self.queries.append(self._begin())
            self._leave.wait(0.02)

    def end(self) -> None:
        """Let the loop end with the query that runs."""
        self._leave.set()

        def ended() -> bool:
            self.queries[-1].stop()  # after a drain the loop may just be starting another one
            return not self._thread.is_alive()

        eventually(ended, "the loop to end")


@pytest.mark.parametrize("timeout", [None, 300], ids=["endless", "limited"])
def test_a_wait_ends_with_the_query_and_not_when_it_is_told_to_end(warm: Warm, tmp_path: Path, timeout: int | None) -> None:
    """What main closes after it, `foreachBatch` may still be using; and the next start would find the name taken."""
    Feed(tmp_path / "input").add()
    block = tmp_path / "block"
    block.touch()
    query = start(warm, tmp_path)
    eventually((tmp_path / "blocked").exists, "a batch to begin")
    stopping, waiting = Started(query.stop), Started(lambda: query.awaitTermination(timeout))
    eventually(lambda: not query.isActive, "the query to be told to end")
    time.sleep(1.5)
    early = waiting.over
    block.unlink()
    for each in (stopping, waiting):
        each.result()
    assert not early
    start(warm, tmp_path)


@pytest.mark.parametrize("polls", [pytest.param(False, id="awaits", marks=pytest.mark.soak), pytest.param(True, id="polls")])
def test_a_loop_that_starts_its_query_again(warm: Warm, tmp_path: Path, polls: bool) -> None:
    """A withdrawn drain does not end the query; a drained one is not started again before the notification is gone."""
    feed, block, out = Feed(tmp_path / "input"), tmp_path / "block", tmp_path / "out/looped"
    block.touch()
    feed.add(3)
    main = Main(lambda: start(warm, tmp_path), polls=polls)
    eventually((tmp_path / "blocked").exists, "a batch in flight")
    unwanted = warm.drains.write()
    warm.drains.reaches(unwanted, "Stopping")
    warm.drains.withdraw(unwanted)
    warm.drains.reaches(unwanted, "Withdrawn")
    block.unlink()
    main.queries[0].processAllAvailable()
    assert len(main.queries) == 1

    with warm.requested() as asked:
        warm.drains.reaches(asked, "Drained")
        assert ids_in(out) == exactly(feed.ids)
        unread = feed.add(2)
        assert main.queries[0].isActive
        assert len(main.queries) == 1
    eventually(lambda: len(main.queries) == 2, "the loop to go on")
    main.queries[1].processAllAvailable()
    warm.drain()
    assert ids_in(out) == exactly(feed.ids)
    assert {row for row in ids_in(out) if row in unread} == set(unread)
    main.end()


def test_any_termination_does_not_come_for_a_subset(warm: Warm, tmp_path: Path) -> None:
    """Main lives on with the queries that were not drained, as if the drained one had never been; it returns when one of them ends."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    drained, kept = (start(warm, tmp_path, name) for name in ("drained", "kept"))
    for query in (drained, kept):
        query.processAllAvailable()
    warm.drain(queries="drained", afterDrain="Keep")
    assert ids_in(tmp_path / "out/drained") == exactly(feed.ids)
    assert drained.awaitTermination(60) is True
    assert not drained.isActive
    assert warm.session.streams.awaitAnyTermination(1) is False
    feed.add()
    kept.processAllAvailable()

    again = start(warm, tmp_path, "drained")
    again.processAllAvailable()
    warm.drain(queries="drained", afterDrain="Keep")
    assert ids_in(tmp_path / "out/drained") == exactly(feed.ids)
    assert warm.session.streams.awaitAnyTermination(1) is False
    kept.stop()
    assert warm.session.streams.awaitAnyTermination(60) is True
    warm.session.streams.resetTerminated()


def test_any_termination_comes_for_what_ended_beside_a_drain(warm: Warm, tmp_path: Path) -> None:
    Feed(tmp_path / "input").add()
    drained, kept = (start(warm, tmp_path, name) for name in ("drained", "kept"))
    for query in (drained, kept):
        query.processAllAvailable()
    with warm.requested(queries="drained", afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Drained")
        kept.stop()
    assert warm.session.streams.awaitAnyTermination(60) is True
    warm.session.streams.resetTerminated()


def test_any_termination_tells_the_last_failure_beside_a_drain(warm: Warm, tmp_path: Path) -> None:
    """As without one."""
    Feed(tmp_path / "input").add()
    start(warm, tmp_path, "drained").processAllAvailable()
    for name in ("first", "second"):
        rate = warm.session.readStream.format("rate").load().select(F.raise_error(F.lit(f"{name} has failed")).alias("failing"))
        with pytest.raises(StreamingQueryException):
            rate.writeStream.format("noop").queryName(name).start().awaitTermination(60)
    told = pytest.raises(StreamingQueryException, match="second has failed")
    with told:
        warm.session.streams.awaitAnyTermination(60)
    with warm.requested(queries="drained", afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Drained")
        with told:
            warm.session.streams.awaitAnyTermination(60)
    warm.session.streams.resetTerminated()


def test_any_termination_comes_when_all_were_held_from_starting(warm: Warm, tmp_path: Path) -> None:
    """A driver that is started after the drain: none of its queries ever runs, so none ever terminates."""
    Feed(tmp_path / "input").add()
    done = QueryReport(id="q", state="Drained", checkpoint_location=f"file:{tmp_path}/checkpoints/looped")
    now = datetime.now(UTC)
    earlier = DrainReport(drain_id=str(uuid.uuid4()), runs=("earlier",), state=DrainState.DRAINED, updated_at=now, queries=(done,))
    channel = open_channel(warm.drains.location)
    channel.reports.write({earlier.drain_id: earlier.to_json()})
    channel.requests.write({earlier.drain_id: DrainNotification(drain_id=earlier.drain_id, created_at=now).to_json()})
    eventually(lambda: warm.agent.gate.phase is Phase.HELD, "the drain to be inherited")
    held = start(warm, tmp_path)
    assert held.isActive
    assert warm.session.streams.awaitAnyTermination(1) is False
    warm.drains.clean_up(everything=True)
    assert warm.session.streams.awaitAnyTermination(60) is True
    assert not held.isActive
    assert not ids_in(tmp_path / "out/looped")


def ran_and_stopped(query: StreamingQuery) -> None:
    """Stop a query as it must be before its SparkContext: the thread of one that is forgotten plans on, in the same checkpoint."""
    query.processAllAvailable()
    query.stop()


def test_another_session_waits_for_the_state_of_the_drained_one(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In local mode the stores outlive the SparkContext, and go on uploading what was drained."""
    waited: list[object] = []
    monkeypatch.setattr("spark_drain_agent.queries.first_start._let_uploads_end", lambda *query: waited.append(query))
    feed, out = Feed(tmp_path / "input"), tmp_path / "out/looped"
    for earlier in (0, 1):
        feed.add(2)
        start(warm, tmp_path).processAllAvailable()
        assert len(waited) == earlier
        warm.drain()
        if not earlier:
            warm.session.stop()
            warm.again()
    assert ids_in(out) == exactly(feed.ids)


@pytest.fixture
def drained(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Feed:
    """Drain a query whose next start waits for uploads that may take a minute; returns its input, with records that it has not read."""
    feed = Feed(tmp_path / "input")
    feed.add(2)
    start(warm, tmp_path).processAllAvailable()
    warm.drain(afterDrain="Keep")
    feed.add(2)
    monkeypatch.setattr("spark_drain_agent.queries.first_start.late_snapshots_seconds", lambda _: 60.0)
    return feed


def test_a_signal_ends_a_start_that_waits(warm: Warm, tmp_path: Path, drained: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler only sets a flag, at which the program looks when its queries are started."""
    monkeypatch.setattr(signals, "_arrived", {signal.SIGTERM: monotonic() - 100})  # which it has ignored
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    begun = time.monotonic()
    try:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
        query = start(warm, tmp_path)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert 0.9 < time.monotonic() - begun < 20
    assert not query.isActive
    assert not start(warm, tmp_path).isActive, "as the next one of several queries"
    with pytest.raises(StreamingQueryException, match="'looped' was not started: a signal came"):
        start(warm, tmp_path, bounded=True)
    assert time.monotonic() - begun < 40
    query.processAllAvailable()
    assert query.awaitTermination() is None
    assert query.exception() is None
    assert warm.session.streams.awaitAnyTermination(1) is True
    monkeypatch.undo()
    start(warm, tmp_path).processAllAvailable()
    warm.drain()
    assert ids_in(tmp_path / "out/looped") == exactly(drained.ids)


@pytest.mark.usefixtures("drained")
def test_the_end_of_spark_ends_a_start_that_waits(warm: Warm, tmp_path: Path) -> None:
    end = threading.Timer(1.0, warm.session.stop)
    end.start()
    try:
        begun = time.monotonic()
        with pytest.raises(EmptyStateError, match="Spark was stopped while it waited"):
            start(warm, tmp_path)
        assert time.monotonic() - begun < 20
    finally:
        end.join()
        warm.again()


def ended(warm: Warm, query: StreamingQuery, wait: str, sink: Path) -> None:
    """Wait for a query's end as programs do."""
    if wait == "awaits":
        query.awaitTermination()
    elif wait == "awaits for a while":
        while not query.awaitTermination(1):
            pass
    elif wait == "awaits any":
        warm.session.streams.awaitAnyTermination()
    elif wait == "forgets":
        while warm.agent.gate.phase is Phase.HELD:
            time.sleep(0.1)
        warm.session.streams.resetTerminated()
        query.awaitTermination()
    elif wait == "looks at the sink":
        eventually(lambda: bool(ids_in(sink)), "what was to be read in the sink")
        query.awaitTermination()
    else:
        while query.isActive if wait == "polls it" else warm.session.streams.active:
            time.sleep(0.1)


@pytest.mark.parametrize(
    "wait",
    [
        "awaits",
        "polls it",
        "looks at the sink",
        *(pytest.param(wait, marks=pytest.mark.soak) for wait in ("awaits for a while", "awaits any", "polls all", "forgets")),
    ],
)
def test_a_bounded_query_that_a_drain_has_put_off_reads_before_it_ends(warm: Warm, tmp_path: Path, wait: str) -> None:
    """A program that archives what there was when it started the query relies on that; a listener looks in its start."""
    feed = Feed(tmp_path / "input")
    feed.add()
    start(warm, tmp_path).processAllAvailable()
    with listening(warm.session, lambda _: warm.session.streams.active) as listener:
        with warm.requested(afterDrain="Keep") as asked:
            warm.drains.reaches(asked, "Drained")
            feed.add()
            query = writer(warm.session, tmp_path, "bounded").trigger(availableNow=True).start()
            waiting = Started(lambda: ended(warm, query, wait, tmp_path / "out/bounded"))
            time.sleep(1.5)
            assert not waiting.over
        waiting.result()
    assert not listener.errors
    assert ids_in(tmp_path / "out/bounded") == exactly(feed.ids)
    assert not query.isActive
    assert query.exception() is None
    assert query.awaitTermination() is None
    assert query.lastProgress is not None
    warm.session.streams.resetTerminated()


@pytest.mark.parametrize("seconds", [0, 0.0004, 0.001])
def test_a_poll_sees_no_end_of_a_query_that_a_drain_holds(warm: Warm, tmp_path: Path, seconds: float) -> None:
    """Also one that does not wait, as of a program with work of its own."""
    Feed(tmp_path / "input").add()
    start(warm, tmp_path).processAllAvailable()
    streams = warm.session.streams
    assert not streams.awaitAnyTermination(seconds)  # type: ignore[arg-type]
    with warm.requested(afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Drained")
        assert (streams.awaitAnyTermination(seconds), len(streams.active)) == (False, 1)  # type: ignore[arg-type]
    streams.resetTerminated()


def test_a_listener_of_a_late_start_may_want_the_lock_under_which_the_query_is_awaited(
    warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has called it before start() returns."""
    monkeypatch.setattr(listener_hooks, "_PATIENCE_SECONDS", 2.0)
    feed, lock, told, listed = Feed(tmp_path / "input"), threading.Lock(), list[str | None](), list[str]()

    def note(name: str | None) -> None:
        listed.extend(query.name for query in warm.session.streams.active)
        with lock:
            told.append(name)

    def main() -> None:
        with lock:
            query.awaitTermination()

    feed.add()
    start(warm, tmp_path).processAllAvailable()
    with listening(warm.session, note) as listener:
        with warm.requested(afterDrain="Keep") as asked:
            warm.drains.reaches(asked, "Drained")
            feed.add()
            query = writer(warm.session, tmp_path, "bounded").trigger(availableNow=True).start()
            waiting = Started(main)
            time.sleep(0.5)
        waiting.result()
        eventually(lambda: "bounded" in told, "the listener to be told")
    assert not listener.errors
    assert told.count("bounded") == 1
    assert listed.count("bounded") == 1, "of the agent's and of Spark's"
    assert ids_in(tmp_path / "out/bounded") == exactly(feed.ids)
    warm.session.streams.resetTerminated()


def test_a_listener_that_stops_a_query_in_its_late_start_is_told_of_others(warm: Warm, tmp_path: Path) -> None:
    """Spark removes a listener in whose call its thread is interrupted, as stop() does with the thread of the query."""
    feed, told, ended = Feed(tmp_path / "input"), list[str | None](), list[str]()

    class Stops(Listener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # pyspark's name
            super().onQueryStarted(event)
            if event.name == "bounded":
                query = warm.session.streams.get(str(event.id))
                assert query is not None
                query.stop()

        def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # pyspark's name
            ended.append(str(event.id))

    feed.add()
    start(warm, tmp_path).processAllAvailable()
    with listening(warm.session, told.append, kind=Stops):
        with warm.requested(afterDrain="Keep") as asked:
            warm.drains.reaches(asked, "Drained")
            query = writer(warm.session, tmp_path, "bounded").trigger(availableNow=True).start()
        query.awaitTermination()
        later = writer(warm.session, tmp_path, "later").trigger(availableNow=True).start()
        later.awaitTermination()
        eventually(lambda: later.id in ended, "its end to be told")
    assert [name for name in told if name in ("bounded", "later")] == ["bounded", "later"]
    warm.session.streams.resetTerminated()


def test_the_end_of_spark_amid_a_late_start_is_that_of_the_query(warm: Warm, tmp_path: Path) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def slow(name: str | None) -> None:
        if name == "bounded":
            begun.set()
            stopped.wait(30)

    Feed(tmp_path / "input").add()
    start(warm, tmp_path).processAllAvailable()
    warm.session.streams.addListener(Listener(slow))
    try:
        with warm.requested(afterDrain="Keep") as asked:
            warm.drains.reaches(asked, "Drained")
            query = writer(warm.session, tmp_path, "bounded").trigger(availableNow=True).start()
        assert begun.wait(30)
        waiting = Started(query.awaitTermination)
        warm.session.stop()
        with pytest.raises(StreamingQueryException):
            waiting.result()
    finally:
        stopped.set()
        warm.again()


def test_bounded_queries_that_a_drain_has_put_off_are_started_as_they_were_to_be(warm: Warm, tmp_path: Path) -> None:
    """Spark copies the session's confs and the thread's local properties in a start; a program may set others for its next query."""
    conf, pool, context = "spark.sql.session.timeZone", "spark.scheduler.pool", warm.session.sparkContext
    zones = {"bounded one": "Asia/Tokyo", "bounded two": "America/Lima", "bounded three": "Europe/Paris"}
    seen: dict[str, tuple[str | None, str | None, str | None]] = {}

    def bounded(name: str) -> StreamingQuery:
        def look(batch: DataFrame, _: int) -> None:
            seen[name] = batch.sparkSession.conf.get(conf), context.getLocalProperty(pool), warm.session.conf.get(conf)

        warm.session.conf.set(conf, zones[name])
        context.setLocalProperty(pool, name)
        return writer(warm.session, tmp_path, name, look).trigger(availableNow=True).start()

    Feed(tmp_path / "input").add()
    start(warm, tmp_path).processAllAvailable()
    with session_confs(warm.session, {conf: "UTC"}):
        with warm.requested(afterDrain="Keep") as asked:
            warm.drains.reaches(asked, "Drained")
            queries = [bounded(name) for name in zones]
            warm.session.conf.set(conf, "Asia/Seoul")
            context.setLocalProperty(pool, None)  # type: ignore[arg-type]  # PySpark removes a property by None
        for query in queries:
            in_thread(query.awaitTermination)
        assert warm.session.conf.get(conf) == "Asia/Seoul"
    assert seen == {name: (zone, name, "Asia/Seoul") for name, zone in zones.items()}
    warm.session.streams.resetTerminated()


def test_a_bounded_query_that_a_drain_has_put_off_has_the_session_as_it_was(warm: Warm, tmp_path: Path) -> None:
    """Spark copies schema, views and functions of the session too in a start, and takes the default checkpoint folder from it."""
    session, default, seen = warm.session, "spark.sql.streaming.checkpointLocation", list[tuple[Any, ...]]()

    def look(batch: DataFrame, _: int) -> None:
        own = batch.sparkSession
        seen.append((own.catalog.currentDatabase(), *own.table("day").collect()[0], *own.sql("SELECT label()").collect()[0]))

    def goes_on_in(name: str) -> None:
        session.sql(f"USE {name}")
        session.sql(f"SELECT '{name}' AS day").createOrReplaceTempView("day")
        session.udf.register("label", lambda: name)
        session.conf.set(default, str(tmp_path / name))

    feed = Feed(tmp_path / "input")
    feed.add()
    start(warm, tmp_path).processAllAvailable()
    for name in ("earlier", "later"):
        session.sql(f"CREATE DATABASE {name}")
    try:
        with session_confs(session, {default: ""}):
            with warm.requested(afterDrain="Keep") as asked:
                warm.drains.reaches(asked, "Drained")
                goes_on_in("earlier")
                query = read(session, tmp_path).writeStream.queryName("bounded").foreachBatch(look).trigger(availableNow=True).start()
                goes_on_in("later")
            in_thread(query.awaitTermination)
            assert session.catalog.currentDatabase() == "later"
    finally:
        session.sql("USE default")
        session.catalog.dropTempView("day")
        for name in ("earlier", "later"):
            session.sql(f"DROP DATABASE {name}")
        session.sql("DROP TEMPORARY FUNCTION label")
    assert seen == [("earlier", "earlier", "earlier")]
    assert (tmp_path / "earlier/bounded/commits/0").exists()
    assert not (tmp_path / "later").exists()
    session.streams.resetTerminated()


def test_bounded_queries_that_look_alike_and_were_put_off_have_their_own_sessions(warm: Warm, tmp_path: Path) -> None:
    """Of one DataFrame, without a name and a checkpoint folder, and checked by Spark or not."""
    zone, checked = "spark.sql.session.timeZone", "spark.sql.streaming.unsupportedOperationCheck"
    zones, seen = ("Asia/Tokyo", "America/Lima", "Europe/Paris", "Asia/Seoul"), dict[str, str | None]()
    late: list[bool] = []

    def look(here: str) -> Callable[[DataFrame, int], None]:
        def note(batch: DataFrame, _: int) -> None:
            seen[here] = batch.sparkSession.conf.get(zone)
            late.append(starts_late(warm.session.sparkContext))

        return note

    Feed(tmp_path / "input").add()
    start(warm, tmp_path).processAllAvailable()
    unchecked = read(warm.session, tmp_path).limit(1).dropDuplicates()
    with session_confs(warm.session, {zone: "UTC", checked: "true"}), pytest.raises(AnalysisException):
        unchecked.writeStream.outputMode("update").foreachBatch(look("UTC")).trigger(availableNow=True).start()
    with session_confs(warm.session, {zone: "UTC", checked: "false"}):
        with warm.requested(afterDrain="Keep") as asked:
            warm.drains.reaches(asked, "Drained")
            queries = list[StreamingQuery]()
            for here in zones:
                warm.session.conf.set(zone, here)
                queries.append(unchecked.writeStream.outputMode("update").foreachBatch(look(here)).trigger(availableNow=True).start())
            warm.session.conf.set(zone, "UTC")
            warm.session.conf.set(checked, "true")
        for query in queries:
            in_thread(query.awaitTermination)
    assert seen == {here: here for here in zones}
    assert not any(late), "what a batch starts is started now"
    warm.session.streams.resetTerminated()


def test_a_bounded_query_with_state_that_was_put_off_has_as_many_partitions_as_at_its_start(warm: Warm, tmp_path: Path) -> None:
    """The agent makes the empty state of a first start, whose confs the checkpoint keeps for good."""
    partitions, checkpoint = "spark.sql.shuffle.partitions", tmp_path / "checkpoints/bounded"
    Feed(tmp_path / "input").add()
    start(warm, tmp_path).processAllAvailable()

    def consume(batch: DataFrame, _: int) -> None:
        batch.count()  # and print nothing: what this process prints meanwhile is taken for the store's command's

    def bounded() -> StreamingQuery:
        counts = read(warm.session, tmp_path).groupBy("id").count().writeStream.queryName("bounded").outputMode("update")
        each = counts.foreachBatch(consume).trigger(availableNow=True)
        return each.option("checkpointLocation", str(checkpoint)).start()

    with session_confs(warm.session, {partitions: "3"}):
        in_thread(bounded().awaitTermination)
        with warm.requested(afterDrain="Keep", stateLossPolicy="Accept") as asked:
            warm.drains.reaches(asked, "Drained")
            Feed(tmp_path / "input").add()
            query = bounded()
            warm.session.conf.set(partitions, "1")
        in_thread(query.awaitTermination)
    last = max(checkpoint.glob("offsets/*"), key=lambda path: int(path.name))
    assert f'"{partitions}":"3"' in last.read_text()
    assert {path.name for path in checkpoint.glob("state/0/[0-9]*")} == {"0", "1", "2"}
    warm.session.streams.resetTerminated()


def test_of_bounded_queries_that_were_put_off_on_one_checkpoint_the_last_one_is_started(warm: Warm, tmp_path: Path) -> None:
    """As Spark stops the query that runs where another one starts; all have the id that is noted there."""
    feed, versions, noted = Feed(tmp_path / "input"), list[int](), str(uuid.uuid4())
    (tmp_path / "checkpoints/bounded").mkdir(parents=True)
    (tmp_path / "checkpoints/bounded/metadata").write_text(f'{{"id":"{noted}"}}')

    def each(version: int) -> Callable[[DataFrame, int], None]:
        return lambda *_: versions.append(version)

    feed.add()
    start(warm, tmp_path).processAllAvailable()
    with warm.requested(afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Drained")
        queries = [writer(warm.session, tmp_path, "bounded", each(n)).trigger(availableNow=True).start() for n in range(3)]
        assert {query.id for query in queries} == {noted}
    for query in queries:
        in_thread(query.awaitTermination)
        assert query.exception() is None
    assert versions == [2]
    assert ids_in(tmp_path / "out/bounded") == exactly(feed.ids)
    warm.session.streams.resetTerminated()


@pytest.mark.parametrize(
    "wait", ["awaits", "polls all", *(pytest.param(wait, marks=pytest.mark.soak) for wait in ("awaits any", "polls it"))]
)
def test_a_signal_lets_a_bounded_query_end_that_a_drain_has_ended(
    warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: str
) -> None:
    """The handler only sets a flag, at which a scheduler looks between its queries."""
    monkeypatch.setattr(signals, "_arrived", {})
    feed = Feed(tmp_path / "input")
    feed.add()
    query = start(warm, tmp_path, "bounded", bounded=True)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with warm.requested() as asked:
            warm.drains.reaches(asked, "Drained")
            waiting = Started(lambda: ended(warm, query, wait, tmp_path / "out/bounded"))
            time.sleep(1.5)
            assert not waiting.over
            os.kill(os.getpid(), signal.SIGTERM)
            waiting.result(20)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ids_in(tmp_path / "out/bounded") == exactly(feed.ids)
    warm.session.streams.resetTerminated()


def test_a_query_without_state_waits_for_no_upload_of_it(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Feed(tmp_path / "input").add()
    writer(warm.session, tmp_path, "looped").start().processAllAvailable()
    warm.drain(afterDrain="Keep")
    monkeypatch.setattr("spark_drain_agent.queries.first_start.late_snapshots_seconds", lambda _: 60.0)
    begun = time.monotonic()
    writer(warm.session, tmp_path, "looped").start().processAllAvailable()
    assert time.monotonic() - begun < 20


def test_a_bounded_query_that_is_put_off_again_is_started_as_it_was_to_be_first(
    warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, starts, put_off = Feed(tmp_path / "input"), list[Callable[[], StreamingQuery]](), warm.agent.held.stand_ins.put_off

    def noted(tracked: TrackedQuery, begin: Callable[[], StreamingQuery] | None) -> HeldQuery:
        assert begin is not None
        starts.append(begin)
        return put_off(tracked, begin)

    feed.add()
    start(warm, tmp_path).processAllAvailable()
    monkeypatch.setattr(warm.agent.held.stand_ins, "put_off", noted)
    with warm.requested(afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Drained")
        query = writer(warm.session, tmp_path, "bounded").trigger(availableNow=True).start()
        assert isinstance(query, HeldQuery)
        query.start_if_due()  # as where another drain holds the driver when it is started
    assert starts == [starts[0]] * 2
    in_thread(query.awaitTermination)
    assert ids_in(tmp_path / "out/bounded") == exactly(feed.ids)
    warm.session.streams.resetTerminated()


def test_a_bounded_query_whose_start_meets_the_end_of_a_drain_is_started(
    warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drain has looked for what it has put off, and there was nothing yet."""
    feed = Feed(tmp_path / "input")
    feed.add()
    start(warm, tmp_path).processAllAvailable()
    put_off = warm.agent.held.stand_ins.put_off

    def late(*arguments: Any) -> Any:
        warm.let_go()
        return put_off(*arguments)

    monkeypatch.setattr(warm.agent.held.stand_ins, "put_off", late)
    with warm.agent.gate.user_waits():
        warm.drains.reaches(warm.drains.write(afterDrain="Keep"), "Drained")
        query = writer(warm.session, tmp_path, "bounded").trigger(availableNow=True).start()
        in_thread(query.awaitTermination)
    assert ids_in(tmp_path / "out/bounded") == exactly(feed.ids)
    warm.session.streams.resetTerminated()


def test_no_listener_is_told_that_a_bounded_query_has_ended_once_more(warm: Warm, tmp_path: Path) -> None:
    """A program archives what there was when it started the query; the flush of what it has left open is no end of the next one."""
    Feed(tmp_path / "input").add()
    told: list[str] = []

    class Ends(Listener):
        def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # pyspark's name
            told.append(str(event.id))

    with listening(warm.session, lambda _: None, kind=Ends):
        query = start(warm, tmp_path, bounded=True)
        query.awaitTermination()
        eventually(lambda: told, "the query's end to be told")
        warm.drain(afterDrain="Keep")
        other = writer(warm.session, tmp_path, "other").start()
        other.stop()
        eventually(lambda: len(told) > 1, "another query's end to be told")
    assert told == [query.id, other.id]


def test_a_bounded_query_that_the_application_has_started_again_itself_is_not_started_once_more(
    warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the moment before; Spark would stop the one that runs (`spark.sql.streaming.stopActiveRunOnRestart`)."""
    monkeypatch.setattr(warm.agent.held.stand_ins, "begin_what_is_due", lambda **_: None)
    Feed(tmp_path / "input").add()
    start(warm, tmp_path).processAllAvailable()
    with warm.requested(afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Drained")
        put_off = start(warm, tmp_path, "bounded", bounded=True)
    block = tmp_path / "block"
    block.touch()
    again = start(warm, tmp_path, "bounded", bounded=True)
    eventually((tmp_path / "blocked").exists, "a batch to begin")
    assert [query.runId for query in warm.session.streams.active] == [again.runId]
    assert not put_off.isActive
    assert put_off.awaitTermination() is None
    assert again.isActive
    block.unlink()
    again.awaitTermination()
    warm.session.streams.resetTerminated()


@pytest.mark.parametrize("stops", [pytest.param(False, marks=pytest.mark.soak), True])
def test_a_late_start_gives_way_to_one_of_the_application(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops: bool) -> None:
    """Which comes while the late one is under way; Spark would stop the one that runs."""
    at, go_on, as_of_start = threading.Event(), threading.Event(), LateStart._analysis_as_of_start
    block = tmp_path / "block"

    def slow(self: LateStart) -> Any:
        at.set()
        go_on.wait(60)
        return as_of_start(self)

    def nameless() -> StreamingQuery:
        made = read(warm.session, tmp_path).writeStream.option("checkpointLocation", str(tmp_path / "checkpoints/bounded"))
        return made.trigger(availableNow=True).foreachBatch(to_files(tmp_path / "out/bounded", block=block)).start()

    monkeypatch.setattr(LateStart, "_analysis_as_of_start", slow)
    Feed(tmp_path / "input").add()
    start(warm, tmp_path).processAllAvailable()
    with warm.requested(afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Drained")
        put_off = nameless()
    try:
        assert at.wait(60)
        stopping = Started(put_off.stop) if stops else None
        block.touch()
        again = nameless()
        eventually((tmp_path / "blocked").exists, "a batch to begin")
    finally:
        go_on.set()
    in_thread(put_off.awaitTermination)
    if stopping is not None:
        stopping.result()
    assert [query.runId for query in warm.session.streams.active] == [again.runId]
    assert not put_off.isActive
    block.unlink()
    again.awaitTermination()
    assert again.exception() is None
    warm.session.streams.resetTerminated()


def test_a_bounded_query_of_an_application_that_is_to_end_is_not_taken_for_done(warm: Warm, tmp_path: Path) -> None:
    Feed(tmp_path / "input").add()
    start(warm, tmp_path).processAllAvailable()
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Drained")
        query = writer(warm.session, tmp_path, "bounded").trigger(availableNow=True).start()
        assert query.isActive
    with pytest.raises(StreamingQueryException, match="query 'bounded' was not started, and has read nothing: a drain has ended"):
        query.awaitTermination()
    assert "what came since is read when the next version, or this one again, is started" in str(query.exception())
    assert not query.isActive
    assert not ids_in(tmp_path / "out/bounded")
    warm.session.streams.resetTerminated()


def test_requested_between_two_sessions(warm: Warm, tmp_path: Path) -> None:
    """A drain that finds no SparkContext, or loses it before anything was touched, is carried out in the application's next one."""
    feed, out = Feed(tmp_path / "input"), tmp_path / "out/looped"
    feed.add(3)
    ran_and_stopped(start(warm, tmp_path))
    warm.session.stop()
    between = warm.drains.write()
    warm.again()
    start(warm, tmp_path)
    warm.drains.reaches(between, "Drained")
    assert ids_in(out) == exactly(feed.ids)
    warm.let_go()

    feed.add(2)
    before = warm.drains.write(execution="AfterApproval")
    query = start(warm, tmp_path)
    warm.drains.reaches(before, "Acknowledged", reason="AwaitingApproval")
    ran_and_stopped(query)
    warm.session.stop()
    warm.again()
    start(warm, tmp_path)
    run = warm.session.sparkContext.applicationId
    eventually(lambda: warm.drains.show(before)["runId"] == run, "the next session's agent to go on with it")
    warm.drains.reaches(before, "Acknowledged", reason="AwaitingApproval")
    warm.drains.withdraw(before)
    warm.drains.reaches(before, "Withdrawn")
    warm.let_go()
    warm.drain()
    assert ids_in(out) == exactly(feed.ids)
