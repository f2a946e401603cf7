"""Stops of Spark: only that of the session which the agent belongs to has to do with its drains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark import SparkContext
from pyspark.errors import IllegalArgumentException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import generation, is_drain_pane, milestones
from spark_drain_agent.drain import after_commit
from spark_drain_agent.driver import agent
from spark_drain_agent.spark_internals.writer import VERSION_CONF
from spark_drain_agent.user_code.batch_marks import marks_of_start

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.driver.streams import Started, in_thread, start
from tests.agent.harness import PER_FILE, Feed, eventually, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def stopped(warm: Warm) -> Iterator[SparkSession]:
    """A session that was stopped, and after which the application has made another one."""
    session = warm.session
    session.stop()
    warm.again()
    yield session
    for query in warm.session.streams.active:
        query.stop()
    warm.session.stop()  # PySpark has forgotten this one when the first was stopped once more
    warm.again()


@pytest.mark.parametrize("another", [True, False])
def test_a_start_in_a_session_that_was_stopped_says_what_spark_says(warm: Warm, another: bool) -> None:
    """A program that starts its queries again and again tells by that whether to go on."""
    writer = warm.session.readStream.format("rate").load().writeStream.format("noop")
    warm.session.stop()
    if another:
        warm.again()
    try:
        with pytest.raises(Py4JJavaError):
            writer.start()
    finally:
        if not another:
            warm.again()


def test_a_start_amid_which_spark_is_stopped_says_what_spark_says(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another thread, as where a program ends while its queries are being started."""
    writer = warm.session.readStream.format("rate").load().writeStream.format("noop")

    def stop_and_mark(generation: int) -> dict[str, str | None]:
        in_thread(warm.session.stop)
        return marks_of_start(generation)

    monkeypatch.setattr(agent, "marks_of_start", stop_and_mark)
    try:
        with pytest.raises(Py4JJavaError):
            writer.start()
    finally:
        warm.again()


@pytest.mark.parametrize("holder", ["session", pytest.param("context", marks=pytest.mark.soak)])
def test_a_session_that_is_stopped_again_keeps_no_drain_from_holding(
    warm: Warm, tmp_path: Path, stopped: SparkSession, holder: str
) -> None:
    """As a finally or a context manager does it; plain PySpark's queries do not notice either."""
    again: SparkSession | SparkContext = stopped if holder == "session" else stopped.sparkContext
    feed = Feed(tmp_path / "input")
    feed.add(2)
    files = read(warm.session, tmp_path).selectExpr("array(id) AS ids").writeStream.option("checkpointLocation", f"{tmp_path}/checkpoint")
    query = files.format("json").start(f"{tmp_path}/out")
    query.processAllAvailable()
    in_thread(again.stop)
    assert not warm.agent.gate.leaving
    feed.add()
    in_thread(query.processAllAvailable)
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Drained")
        in_thread(again.stop)  # does not wait for the drain
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def test_a_batch_knows_what_it_runs_for_after_a_session_was_stopped_again(warm: Warm, tmp_path: Path, stopped: SparkSession) -> None:
    """PySpark has no active context then, although one runs."""
    Feed(tmp_path / "input").add(2)
    told: list[tuple[bool, int]] = []

    def ask(batch: DataFrame, _: int) -> None:
        batch.collect()
        told.append((is_drain_pane(), generation()))

    windows = counted(read(warm.session, tmp_path)).writeStream.option("checkpointLocation", f"{tmp_path}/checkpoint").foreachBatch(ask)
    query = windows.start()
    in_thread(stopped.stop)
    query.processAllAvailable()
    warm.drain()
    assert {*told[:-1]} == {(False, 0)}
    assert told[-1] == (True, 0)


def test_a_drain_that_cannot_hold_gives_the_queries_back_and_says_why(warm: Warm, tmp_path: Path) -> None:
    """Spark may take long to stop, and the end of a program too."""
    feed, out = Feed(tmp_path / "input"), tmp_path / "out/one"
    feed.add(2)
    query = start(warm.session, tmp_path, "one")
    query.processAllAvailable()
    try:
        assert warm.agent.gate.leave()
        with warm.requested() as asked:
            why = "the application is stopping Spark, or ends"
            eventually(lambda: warm.drains.show(asked)["message"].startswith(why), "the drain to say why")
            assert warm.drains.show(asked)["state"] == "Stopping"
            feed.add()
            in_thread(query.processAllAvailable)
            assert ids_in(out) == exactly(feed.ids)
            warm.drains.withdraw(asked)
            warm.drains.reaches(asked, "Withdrawn")
    finally:
        warm.agent.gate._leaving = False
    warm.drain()
    assert ids_in(out) == exactly(feed.ids)


def start_counted(warm: Warm, base: Path) -> StreamingQuery:
    warm.session.conf.set(VERSION_CONF, "one")
    writer = counted(read(warm.session, base)).writeStream.queryName("counted").option("checkpointLocation", f"{base}/checkpoints/counted")
    return writer.foreachBatch(to_files(base / "out/counted", poison=base / "poison")).start()


@pytest.fixture
def poisoned(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Feed:
    """Input of a query whose flush fails until a file is removed, and of one beside it."""
    monkeypatch.setattr(after_commit, "_RETRY_SECONDS", (0.1,))
    feed = Feed(tmp_path / "input")
    feed.add(3)
    start_counted(warm, tmp_path).processAllAvailable()
    start(warm.session, tmp_path, "beside").processAllAvailable()
    (tmp_path / "poison").touch()
    return feed


def make_anew(warm: Warm) -> None:
    in_thread(warm.session.stop)
    in_thread(warm.again)


def test_the_next_session_of_a_driver_finishes_a_drain_that_was_given_up(warm: Warm, tmp_path: Path, poisoned: Feed) -> None:
    """As main does it that takes any failure for a reason to begin again, in a process that nobody restarts."""
    (query,) = (query for query in warm.session.streams.active if query.name == "counted")
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Stalled", reason="FlushFailed")
    with pytest.raises(StreamingQueryException, match="given up"):
        in_thread(query.awaitTermination)
    make_anew(warm)
    (tmp_path / "poison").unlink()
    in_thread(lambda: start_counted(warm, tmp_path)).processAllAvailable()
    assert ids_in(tmp_path / "out/counted") == exactly(poisoned.ids)


def test_the_next_session_of_a_driver_finishes_a_drain_that_stalls(warm: Warm, tmp_path: Path, poisoned: Feed) -> None:
    (query,) = (query for query in warm.session.streams.active if query.name == "counted")
    with warm.requested(queries="counted", afterDrain="Keep") as asked:
        waiting = Started(query.awaitTermination)
        warm.drains.reaches(asked, "Stalled", reason="FlushFailed")
        make_anew(warm)
        with pytest.raises(StreamingQueryException, match="its SparkContext was stopped"):
            waiting.result()
        (tmp_path / "poison").unlink()
        in_thread(lambda: start(warm.session, tmp_path, "beside"))
        held = in_thread(lambda: start_counted(warm, tmp_path))
        eventually(lambda: warm.drains.show(asked)["state"] == "Drained", "the next session to finish the drain", 60)
        assert held.isActive
    assert ids_in(tmp_path / "out/counted") == exactly(poisoned.ids)


def test_who_waits_for_a_drained_query_goes_on_when_its_session_was_stopped(warm: Warm, tmp_path: Path) -> None:
    """The request stays, and its removal is seen by the next session only."""
    feed = Feed(tmp_path / "input")
    feed.add()
    query = start(warm.session, tmp_path, "drained")
    query.processAllAvailable()
    with warm.requested(queries="drained", afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Drained")
        held = in_thread(lambda: start(warm.session, tmp_path, "drained"))
        waiting = [Started(query.awaitTermination), Started(held.awaitTermination)]
        make_anew(warm)
        assert [waits.result() for waits in waiting] == [None, None]
        assert not held.isActive


def test_the_next_session_of_a_driver_begins_where_a_first_start_has_failed(warm: Warm, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "input")
    feed.add()
    start_counted(warm, tmp_path).processAllAvailable()
    warm.drain()
    feed.add()
    taken = warm.session.readStream.format("rate").load().writeStream.queryName("counted").format("noop").start()
    with pytest.raises(IllegalArgumentException, match="already active"):
        start_counted(warm, tmp_path)
    eventually(lambda: not (tmp_path / "checkpoints/counted/_drain/lease").exists(), "the lease of the start that failed to end", 20)
    with pytest.raises(IllegalArgumentException, match="already active"):
        start_counted(warm, tmp_path)
    taken.stop()
    make_anew(warm)
    in_thread(lambda: start_counted(warm, tmp_path)).processAllAvailable()
    assert ids_in(tmp_path / "out/counted")[PER_FILE] == 1


def stop_by_itself(warm: Warm) -> None:
    """Stop the SparkContext as Spark does it, and listeners and libraries in the JVM: PySpark does not notice."""
    context: Any = warm.session.sparkContext._jsc
    in_thread(context.sc().stop)


def test_a_drain_that_cannot_get_on_ends_with_a_spark_that_stops_by_itself(warm: Warm, tmp_path: Path, poisoned: Feed) -> None:
    """As with a driver that dies: the application fails, and its next start finishes the drain."""
    (query,) = (query for query in warm.session.streams.active if query.name == "counted")
    streams = warm.session.streams
    with warm.requested() as asked:
        waits = [Started(query.awaitTermination), Started(streams.awaitAnyTermination)]
        warm.drains.reaches(asked, "Stalled", reason="FlushFailed")
        ends = Started(warm.agent.hold_exit)
        stop_by_itself(warm)
        for waiting in waits:
            with pytest.raises(StreamingQueryException, match="its SparkContext was stopped"):
                waiting.result(30)
        ends.result(30)
        assert warm.drains.show(asked)["state"] == "Stalled"
        make_anew(warm)
        (tmp_path / "poison").unlink()
        for again in (lambda: start_counted(warm, tmp_path), lambda: start(warm.session, tmp_path, "beside")):
            in_thread(again)
        eventually(lambda: warm.drains.show(asked)["state"] == "Drained", "the next session to finish the drain", 60)
    assert ids_in(tmp_path / "out/counted") == exactly(poisoned.ids)


def test_a_drained_driver_is_held_also_when_its_spark_stops_by_itself(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed(tmp_path / "input")
    feed.add()
    query = start(warm.session, tmp_path, "drained")
    query.processAllAvailable()
    monkeypatch.setattr(milestones, "_observers", [lambda point: stop_by_itself(warm) if point == "reporting" else None])
    try:
        with warm.requested() as asked:
            warm.drains.reaches(asked, "Drained")
            assert in_thread(lambda: query.awaitTermination(1)) is False
            assert query.isActive
        assert in_thread(query.awaitTermination) is None
    finally:
        make_anew(warm)


@pytest.fixture
def same_id(warm: Warm, monkeypatch: pytest.MonkeyPatch) -> str:
    """As on Kubernetes in cluster mode, where each SparkContext of a driver gets its id from one conf."""
    made = warm.session.sparkContext.applicationId
    monkeypatch.setattr(SparkContext, "applicationId", property(lambda _: made))
    return made


def test_the_next_session_of_a_driver_has_an_agent_of_its_own_also_under_the_same_id(warm: Warm, tmp_path: Path, same_id: str) -> None:
    first = warm.agent
    make_anew(warm)
    assert warm.agent is not first
    assert warm.agent.identity.run_id == same_id
    feed = Feed(tmp_path / "input")
    feed.add()
    in_thread(lambda: start(warm.session, tmp_path, "one")).processAllAvailable()
    assert warm.drain()["message"] == "1 query drained"
    assert ids_in(tmp_path / "out/one") == exactly(feed.ids)
