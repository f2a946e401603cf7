"""Starts and stops from listeners, batches, callbacks and several threads: none waits for a drain that waits for it, none is missed."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from spark_drain_agent import milestones, on_drain
from spark_drain_agent.checkpoint.complete import prepare
from spark_drain_agent.checkpoint.fence import fence
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal, JournalStep
from spark_drain_agent.clock import utc_now
from spark_drain_agent.drain import before_commit
from spark_drain_agent.drain.selection import select
from spark_drain_agent.gate import Phase
from spark_drain_agent.queries.unasked_starts import QueryStart
from spark_drain_agent.user_code import callbacks
from spark_drain_store import DrainNotification, DrainReport, DrainState, QueryReport, open_channel
from spark_drain_store.drains import write_notification

from tests.agent.apps.sinks import read, to_files
from tests.agent.driver.streams import Started, in_thread, listening, start, writer
from tests.agent.harness import Feed, eventually, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def stopping(warm: Warm) -> Iterator[threading.Event]:
    """Set by a test when its drain waits for what runs."""
    event = threading.Event()
    yield event
    event.set()


def lingering(stopping: threading.Event) -> tuple[threading.Event, Callable[[DataFrame, int], None]]:
    """Return what each batch of a query does that lasts until a drain waits for it, and what says that one has begun."""
    began = threading.Event()

    def linger(batch: DataFrame, batch_id: int) -> None:
        began.set()
        stopping.wait(120)

    return began, linger


def names(drain: dict[str, Any]) -> set[str]:
    return {query["name"] for query in drain["queries"]}


def test_a_listener_starts_a_query(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    def start_another(name: str | None) -> None:
        if name == "first":
            start(warm.session, tmp_path, "second").processAllAvailable()

    with listening(warm.session, start_another) as listener:
        in_thread(lambda: start(warm.session, tmp_path, "first"))
        assert not listener.errors
    assert names(warm.drain()) == {"first", "second"}
    assert ids_in(tmp_path / "out/second") == exactly(feed.ids)


def test_starts_do_not_wait_for_each_other(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    other_started = threading.Event()
    with listening(warm.session, lambda name: name == "patient" and other_started.wait(60)):
        patient = Started(lambda: start(warm.session, tmp_path, "patient"))
        in_thread(lambda: start(warm.session, tmp_path, "quick"), 45)
        other_started.set()
        patient.result()


def test_a_start_in_progress_is_waited_for(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """A query that is in Spark's list while its start has not yet returned is no query that the agent did not see."""
    go_on, asked_too_early = threading.Event(), threading.Event()

    def linger(name: str | None) -> None:
        if name == "slow":
            asked_too_early.set()
            go_on.wait(60)

    start(warm.session, tmp_path, "quick").processAllAvailable()
    with listening(warm.session, linger):
        slow = Started(lambda: start(warm.session, tmp_path, "slow"))
        assert asked_too_early.wait(60)
        with warm.requested() as asked:
            warm.drains.reaches(asked, "Acknowledged", "Stopping")
            threading.Event().wait(1)
            assert warm.drains.show(asked)["state"] in ("Acknowledged", "Stopping")
            go_on.set()
            slow.result()
            assert names(warm.drains.reaches(asked, "Drained")) == {"quick", "slow"}


def test_a_batch_stops_another_query_while_the_drain_waits_for_it(
    warm: Warm, tmp_path: Path, feed: Feed, stopping: threading.Event
) -> None:
    other = start(warm.session, tmp_path, "other")
    other.processAllAvailable()
    began = threading.Event()

    def stop_other(batch: DataFrame, batch_id: int) -> None:
        began.set()
        if not stopping.is_set():
            stopping.wait(120)
            other.stop()

    start(warm.session, tmp_path, "batching", stop_other)
    assert began.wait(60)
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
        stopping.set()
        drain = warm.drains.reaches(asked, "Drained")
        assert names(drain) == {"batching"}
        assert "the application had stopped query 'other' itself" in drain["message"]
    assert not other.isActive
    start(warm.session, tmp_path, "batching").processAllAvailable()
    assert ids_in(tmp_path / "out/batching") == exactly(feed.ids)


@pytest.mark.parametrize("waits", ["a second", *(pytest.param(waits, marks=pytest.mark.soak) for waits in ("for its end", "for any end"))])
def test_a_query_that_the_application_restarts_while_it_is_drained(
    warm: Warm, tmp_path: Path, feed: Feed, stopping: threading.Event, waits: str
) -> None:
    """A program that restarts its query now and then, as for fresh static data, has not left it behind."""
    began, linger = lingering(stopping)
    start(warm.session, tmp_path, "batching", linger)
    other = start(warm.session, tmp_path, "other")
    other.processAllAvailable()
    assert began.wait(60)
    warm.session.streams.resetTerminated()

    def restart() -> None:
        other.stop()
        stopping.set()
        if waits == "a second":
            time.sleep(1)
        elif waits == "for its end":
            other.awaitTermination()
        else:
            warm.session.streams.awaitAnyTermination()
            warm.session.streams.resetTerminated()
        start(warm.session, tmp_path, "other")

    with warm.requested() as asked:
        warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
        again = Started(restart)
        assert names(warm.drains.reaches(asked, "Drained")) == {"batching", "other"}
        again.result()
    assert ids_in(tmp_path / "out/other") == exactly(feed.ids)


@pytest.fixture
def calm(warm: Warm, tmp_path: Path, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Until this is set, the application restarts one of its two queries whenever a drain is about to decide."""
    calm = threading.Event()
    running = [start(warm.session, tmp_path, name) for name in ("restless", "steady")]
    for query in running:
        query.processAllAvailable()

    def restart() -> None:
        running[0].stop()
        running[0] = start(warm.session, tmp_path, "restless")

    monkeypatch.setattr(milestones, "_observers", [lambda point: point == "settled" and not calm.is_set() and in_thread(restart)])
    return calm


def test_a_query_that_the_application_restarts_again_and_again(warm: Warm, tmp_path: Path, feed: Feed, calm: threading.Event) -> None:
    """The others read on until there is a moment in which all can be drained, and the report names it."""
    with warm.requested() as asked:
        told = warm.drains.reaches(asked, "Stopping", reason="QueryRestarting")
        assert "query 'restless'" in told["message"]
        assert "steady" not in told["message"]
        feed.add()
        eventually(lambda: ids_in(tmp_path / "out/steady") == exactly(feed.ids), "the other query to read on", 60)
        calm.set()
        assert names(warm.drains.reaches(asked, "Drained")) == {"steady", "restless"}


def test_a_deadline_while_the_application_restarts_a_query(warm: Warm, tmp_path: Path, feed: Feed, calm: threading.Event) -> None:
    now = utc_now()
    hasty = DrainNotification(drain_id="hasty", created_at=now, deadline=now + timedelta(seconds=6))
    with warm.agent.gate.user_waits():
        write_notification(open_channel(warm.drains.location), hasty)
        told = warm.drains.reaches(hasty.drain_id, "Failed")
    warm.let_go()
    assert (told["reason"], "stopped query 'restless' again and again" in told["message"]) == ("DeadlineExceeded", True)
    feed.add()
    eventually(lambda: ids_in(tmp_path / "out/steady") == exactly(feed.ids), "the other query to read on", 60)


def test_a_query_that_is_restarted_again_and_again_once_a_callback_was_called(
    warm: Warm, tmp_path: Path, feed: Feed, calm: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the callback was told stands still does so until the drain has ended."""
    monkeypatch.setattr(callbacks, "_registered", [])
    on_drain(lambda _: None)
    with warm.requested() as asked:
        drain = warm.drains.reaches(asked, "Failed")
    assert (drain["reason"], "stopped query 'restless' again and again" in drain["message"]) == ("QueryFailed", True)
    feed.add()
    eventually(lambda: ids_in(tmp_path / "out/steady") == exactly(feed.ids), "the other query to read on", 60)


def test_a_query_that_is_stopped_while_it_is_planned_is_not_left_out(
    warm: Warm, tmp_path: Path, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drain has just looked for what was stopped, and plans what runs."""
    restless, steady = start(warm.session, tmp_path, "restless"), start(warm.session, tmp_path, "steady")
    for query in (restless, steady):
        query.processAllAvailable()
    again: list[Started] = []

    def start_again() -> None:
        time.sleep(1)
        start(warm.session, tmp_path, "restless")

    def stopped_meanwhile(*arguments: Any) -> Any:
        if not again and warm.agent.gate.phase is Phase.DECIDING:
            in_thread(restless.stop)
            again.append(Started(start_again))
        return select(*arguments)

    monkeypatch.setattr(before_commit, "select", stopped_meanwhile)
    assert names(warm.drain()) == {"steady", "restless"}
    again[0].result()


def test_a_drain_beside_a_query_that_fails_and_is_restarted(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """A supervisor restarts it every second; its main polls, and the agent counts what it starts."""
    start(warm.session, tmp_path, "healthy").processAllAvailable()
    calm = threading.Event()

    def fail(batch: DataFrame, batch_id: int) -> None:
        raise ValueError("no space left")

    def supervise() -> None:
        while not calm.is_set():
            query = start(warm.session, tmp_path, "fails", fail)
            while query.isActive and not calm.is_set():
                time.sleep(0.05)
            calm.wait(0.5)

    supervisor = Started(supervise)
    try:
        asked = warm.drains.write(queries="healthy", afterDrain="Keep")
        assert names(warm.drains.reaches(asked, "Drained")) == {"healthy"}
    finally:
        calm.set()
        supervisor.result()
        warm.let_go()


def test_a_query_that_the_application_restarts_while_it_catches_up(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    feed.add(8)
    first = start(warm.session, tmp_path, "restarted", lambda _, __: time.sleep(1))
    with warm.requested("CatchUp") as asked:
        warm.drains.reaches(asked, "Acknowledged", reason="CatchingUp")
        in_thread(first.stop)
        time.sleep(1)
        again = Started(lambda: start(warm.session, tmp_path, "restarted"))
        assert names(warm.drains.reaches(asked, "Drained")) == {"restarted"}
        again.result()
    assert ids_in(tmp_path / "out/restarted") == exactly(feed.ids)


def test_a_deadline_while_a_query_that_is_restarted_again_and_again_reads_on(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """It has more to read than it is given the time for, so that nothing else tells why the drain does not come to its end."""
    feed.add(200)
    began, calm = threading.Event(), threading.Event()

    def linger(batch: DataFrame, batch_id: int) -> None:
        began.set()
        time.sleep(0.3)

    def supervise() -> None:
        while not calm.is_set():
            query = start(warm.session, tmp_path, "restless", linger)
            calm.wait(1)
            query.stop()

    supervisor = Started(supervise)
    assert began.wait(60)
    request = DrainNotification(drain_id="catch-up", created_at=utc_now(), mode="CatchUp")
    requests, again = open_channel(warm.drains.location).requests, "query 'restless' again and again"
    try:
        with warm.agent.gate.user_waits():
            requests.write({request.drain_id: request.to_json()})
            warm.drains.reaches(request.drain_id, "Acknowledged", reason="CatchingUp")
            eventually(lambda: f"stops {again}" in warm.drains.show(request.drain_id)["message"], "the query to be named")
            requests.write({request.drain_id: replace(request, deadline=utc_now()).to_json()})
            drain = warm.drains.reaches(request.drain_id, "Failed")
    finally:
        calm.set()
        supervisor.result()
        warm.let_go()
    assert (drain["reason"], f"stopped {again}" in drain["message"]) == ("DeadlineExceeded", True)


@pytest.mark.parametrize("ended_by", ["the application", "an earlier drain"])
def test_a_query_that_is_named_between_its_end_and_its_next_start(warm: Warm, tmp_path: Path, feed: Feed, ended_by: str) -> None:
    first, other = start(warm.session, tmp_path, "restarted"), start(warm.session, tmp_path, "other")
    for query in (first, other):
        query.processAllAvailable()
    if ended_by == "the application":
        first.stop()
    else:
        with warm.requested(queries="restarted", afterDrain="Keep") as earlier:
            warm.drains.reaches(earlier, "Drained")
    with warm.requested(queries="restarted", afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Acknowledged")
        time.sleep(1)
        again = Started(lambda: start(warm.session, tmp_path, "restarted"))
        assert names(warm.drains.reaches(asked, "Drained")) == {"restarted"}
        again.result()
    assert ids_in(tmp_path / "out/restarted") == exactly(feed.ids)


@pytest.mark.parametrize("restarted", [True, False], ids=["restarted", "left"])
def test_a_query_that_an_earlier_drain_has_ended_with_what_is_open_in_it(warm: Warm, tmp_path: Path, feed: Feed, restarted: bool) -> None:
    """Mode Stop emits nothing: to a drain of the whole application such a query is like one that the application has stopped."""
    for name in ("ended", "other"):
        start(warm.session, tmp_path, name).processAllAvailable()
    with warm.requested("Stop", queries="ended", afterDrain="Keep") as earlier:
        warm.drains.reaches(earlier, "Drained")
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Acknowledged", "Stopping")
        time.sleep(1)
        again = Started(lambda: start(warm.session, tmp_path, "ended")) if restarted else None
        drain = warm.drains.reaches(asked, "Drained")
        assert names(drain) == ({"ended", "other"} if restarted else {"other"})
        assert ("an earlier drain with mode 'Stop' has ended query 'ended': what is open" in drain["message"]) == (not restarted)
    if again is not None:
        again.result()


@pytest.mark.parametrize(
    ("mode", "restarted"), [pytest.param("CatchUp", True, marks=pytest.mark.soak), ("CatchUp", False), ("Drain", False)]
)
def test_a_drain_after_an_earlier_one(warm: Warm, tmp_path: Path, feed: Feed, mode: str, restarted: bool) -> None:
    """What the earlier drain has ended has nothing open, but there is more to read."""
    start(warm.session, tmp_path, "only").processAllAvailable()
    with warm.requested(queries="only", afterDrain="Keep") as earlier:
        warm.drains.reaches(earlier, "Drained")
    feed.add(2)
    with warm.requested(mode) as asked:
        warm.drains.reaches(asked, "Acknowledged")
        time.sleep(1)
        again = Started(lambda: start(warm.session, tmp_path, "only")) if restarted else None
        drain = warm.drains.reaches(asked, "Drained")
        assert names(drain) == ({"only"} if restarted else set())
        assert ("an earlier drain has ended query 'only': what has come since was not read" in drain["message"]) == (not restarted)
    if again is not None:
        again.result()
        assert ids_in(tmp_path / "out/only") == exactly(feed.ids)


@pytest.mark.parametrize("asks", ["while it is held", pytest.param("after it was let go", marks=pytest.mark.soak)])
@pytest.mark.parametrize("restarted", [True, False], ids=["goes on", "tidies up"])
def test_a_drain_that_is_requested_of_an_application_that_is_to_end(
    warm: Warm, tmp_path: Path, feed: Feed, restarted: bool, asks: str
) -> None:
    """It is for the next version, however long this one takes to end."""
    start(warm.session, tmp_path, "only").processAllAvailable()
    with warm.requested() as earlier:
        warm.drains.reaches(earlier, "Drained")
        asked = warm.drains.write() if asks == "while it is held" else ""
        warm.drains.clean_up()
        eventually(lambda: warm.agent.gate.phase is Phase.OPEN, "the application to be let go")
        asked = asked or warm.drains.write()
        if restarted:
            again = Started(lambda: start(warm.session, tmp_path, "only"))
            assert names(warm.drains.reaches(asked, "Drained")) == {"only"}
            again.result()
        else:
            eventually(lambda: "next version" in warm.drains.show(asked)["message"], "the drain to wait for the next version")
            time.sleep(3)
            assert warm.drains.show(asked)["state"] == "Acknowledged"


def test_a_drain_of_an_application_that_goes_on_after_all_is_judged_by_all_its_queries(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """The one that is named does not come back."""
    for name in ("only", "other"):
        start(warm.session, tmp_path, name).processAllAvailable()
    with warm.requested() as earlier:
        warm.drains.reaches(earlier, "Drained")
        asked = warm.drains.write(queries="other", afterDrain="Keep")
        warm.drains.clean_up()
        eventually(lambda: "next version" in warm.drains.show(asked)["message"], "the drain to wait for the next version")
        again = Started(lambda: start(warm.session, tmp_path, "only"))
        assert warm.drains.reaches(asked, "Rejected")["reason"] == "UnknownQuery"
        again.result()


def test_a_query_that_is_stopped_under_a_drain_that_names_it(warm: Warm, tmp_path: Path, feed: Feed, stopping: threading.Event) -> None:
    began, linger = lingering(stopping)
    blocked, other = start(warm.session, tmp_path, "blocked", linger), start(warm.session, tmp_path, "other")
    other.processAllAvailable()
    assert began.wait(60)
    with warm.requested(queries="blocked,other", afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
        in_thread(other.stop)
        stopping.set()
        drain = warm.drains.reaches(asked, "Failed")
        assert (drain["reason"], "stopped query 'other' while it was being drained" in drain["message"]) == ("QueryFailed", True)
    blocked.processAllAvailable()
    assert ids_in(tmp_path / "out/blocked") == exactly(feed.ids)


def test_a_batch_starts_a_query_while_the_drain_waits_for_it(warm: Warm, tmp_path: Path, feed: Feed, stopping: threading.Event) -> None:
    began = threading.Event()

    def start_inner(batch: DataFrame, batch_id: int) -> None:
        began.set()
        if not stopping.is_set():
            stopping.wait(120)
            start(warm.session, tmp_path, "inner")

    start(warm.session, tmp_path, "batching", start_inner)
    assert began.wait(60)
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
        stopping.set()
        assert names(warm.drains.reaches(asked, "Drained")) == {"batching", "inner"}
    assert not warm.session.streams.active


def test_a_callback_starts_a_query(warm: Warm, tmp_path: Path, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called once, although its query has to be planned and frozen too."""
    monkeypatch.setattr(callbacks, "_registered", [])
    started: list[str] = []

    @on_drain(timeout_seconds=60)
    def start_one_more(_: object) -> None:
        started.append(start(warm.session, tmp_path, f"late-{len(started)}").id)

    start(warm.session, tmp_path, "early").processAllAvailable()
    assert names(warm.drain()) == {"early", "late-0"}
    assert len(started) == 1


def test_a_thread_and_a_listener_start_queries_while_the_drain_waits(
    warm: Warm, tmp_path: Path, feed: Feed, stopping: threading.Event
) -> None:
    """The batch may need what that thread does: no start waits for the drain's end."""
    began, linger = lingering(stopping)
    with listening(warm.session, lambda name: name == "outer" and start(warm.session, tmp_path, "inner")) as listener:
        start(warm.session, tmp_path, "batching", linger)
        assert began.wait(60)
        with warm.requested() as asked:
            warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
            in_thread(lambda: start(warm.session, tmp_path, "outer"))
            stopping.set()
            assert names(warm.drains.reaches(asked, "Drained")) == {"batching", "outer", "inner"}
        assert not listener.errors


def test_two_starts_on_one_checkpoint_end_an_interrupted_drain_once(
    warm: Warm, tmp_path: Path, feed: Feed, caplog: pytest.LogCaptureFixture
) -> None:
    query = start(warm.session, tmp_path, "twice")
    query.processAllAvailable()
    query.stop()
    files = CheckpointFiles(warm.agent.internals, f"file:{tmp_path}/checkpoints/twice")
    journal = Journal(
        drain_id="6f1c",
        step=JournalStep.PREPARED,
        checkpoint_policy="Continue",
        query_name="twice",
        sink="foreachBatch",
        sources=(),
        batch_id=1,
        watermark_ms=0,
        metadata=files.read("metadata") or "",
        fingerprint="f",
        spark_version=warm.session.version,
        application="local-1",
        generation=1,
        flushes=False,
    )
    fence(files, prepare(files, journal))
    mine = QueryReport(id="q", state="Fencing", checkpoint_location=f"file:{tmp_path}/checkpoints/twice")
    told = DrainReport(drain_id="6f1c", runs=("before",), state=DrainState.STOPPING, updated_at=utc_now(), queries=(mine,))
    warm.agent.channel.reports.write({"6f1c": told.to_json()})
    together = threading.Barrier(2)

    def begin() -> None:
        together.wait()
        with contextlib.suppress(Exception):  # as in plain Spark one of the two may find the other one running
            start(warm.session, tmp_path, "twice")

    caplog.set_level("INFO", logger="spark_drain")
    for started in [Started(begin) for _ in range(2)]:
        started.result()
    assert sum("interrupted before its flush" in record.getMessage() for record in caplog.records) == 1
    assert "6f1c" not in warm.agent.channel.reports.read().entries
    feed.add()
    eventually(lambda: ids_in(tmp_path / "out/twice") == exactly(feed.ids), "the query to read on", 60)


@pytest.mark.parametrize("how", ["awaits", pytest.param("polls", marks=pytest.mark.soak)])
def test_a_batch_waits_for_a_query_that_ended_long_ago(how: str, warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """The drain waits for the batch: what the batch asks of a query that is drained too must not wait for the drain."""
    windows = read(warm.session, tmp_path).withWatermark("at", "10 seconds").groupBy(F.window("at", "10 seconds")).count()
    once = windows.writeStream.queryName("table").option("checkpointLocation", str(tmp_path / "checkpoints/table")).format("noop")
    table = once.trigger(availableNow=True).start()
    assert table.awaitTermination(60)

    def look(batch: DataFrame, batch_id: int) -> None:
        batch.collect()
        if how == "awaits":
            table.awaitTermination()
        while table.isActive:
            threading.Event().wait(0.05)

    facts = windows.writeStream.queryName("facts").option("checkpointLocation", str(tmp_path / "checkpoints/facts")).foreachBatch(look)
    facts.start().processAllAvailable()
    assert names(warm.drain()) == {"table", "facts"}


def test_a_forked_child_is_not_held(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    start(warm.session, tmp_path, "q").processAllAvailable()
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Drained")
        child = os.fork()
        if child == 0:
            warm.agent.hold_exit()
            os._exit(7)
        assert os.waitstatus_to_exitcode(_waited(child)) == 7


def _waited(child: int) -> int:
    for _ in range(600):
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        threading.Event().wait(0.05)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("temporary", [False, True])
def test_a_query_runs_although_its_start_was_interrupted(warm: Warm, tmp_path: Path, feed: Feed, temporary: bool) -> None:
    """A batch starts a query while its own query is stopped: Spark lets the new one run, and the application has no handle on it."""
    errors: list[str] = []
    starts, raised = threading.Event(), threading.Event()

    def each(batch: DataFrame, batch_id: int) -> None:
        warm.session.sparkContext.clearJobTags()  # PySpark's listeners fail on those of a batch
        child = writer(warm.session, tmp_path, "child")
        if temporary:
            child = read(warm.session, tmp_path).writeStream.queryName("child").foreachBatch(to_files(tmp_path / "out/child"))
        try:
            child.start()
        except Exception as error:
            errors.append(str(error))
        raised.set()

    def linger(name: str | None) -> None:
        if name == "child":
            starts.set()
            raised.wait(60)

    with listening(warm.session, linger):
        parent = start(warm.session, tmp_path, "parent", each)
        assert starts.wait(60)
        in_thread(parent.stop)
    assert "InterruptedException" in "".join(errors)
    assert names(warm.drain(**({"checkpoint__policy": "Keep"} if temporary else {}))) == {"child"}
    assert ids_in(tmp_path / "out/child") == exactly(feed.ids)


@pytest.mark.parametrize("raised", [TimeoutError, pytest.param(KeyboardInterrupt, marks=pytest.mark.soak)])
def test_a_query_runs_although_a_signal_handler_ended_the_call_of_its_start(
    warm: Warm, tmp_path: Path, feed: Feed, raised: type[BaseException]
) -> None:
    """As with a time limit for calls, or Ctrl-C: Spark starts the query all the same."""
    left = threading.Event()

    def leave(*_: object) -> None:
        raise raised("the start takes too long")

    def linger(name: str | None) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        left.wait(60)

    before = signal.signal(signal.SIGUSR1, leave)
    try:
        with listening(warm.session, linger):
            with pytest.raises((raised, Py4JError)):  # a TimeoutError is an error of its connection to py4j
                start(warm.session, tmp_path, "child")
            left.set()
            eventually(lambda: ids_in(tmp_path / "out/child") == exactly(feed.ids), "the query to read", 60)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert names(warm.drain()) == {"child"}


@pytest.mark.parametrize("temporary", [False, True])
def test_a_start_that_fails_does_not_take_another_start_of_the_same_data_for_its_own(
    warm: Warm, tmp_path: Path, feed: Feed, temporary: bool
) -> None:
    """Two sinks of one DataFrame are started side by side, and the one for debugging cannot be."""
    begins, go_on = threading.Event(), threading.Event()
    data = read(warm.session, tmp_path)
    good = data.writeStream.foreachBatch(to_files(tmp_path / "out/good"))
    if not temporary:
        good = good.queryName("good").option("checkpointLocation", str(tmp_path / "checkpoints/good"))

    def linger(name: str | None) -> None:
        begins.set()
        go_on.wait(60)

    with listening(warm.session, linger):
        starting = Started(good.start)
        try:
            assert begins.wait(60)
            with pytest.raises(Exception, match="nosuch"):
                data.writeStream.format("nosuch").start()
            if not temporary:
                with pytest.raises(Exception, match="already active"):
                    data.writeStream.format("noop").queryName("good").start()
        finally:
            go_on.set()
        query = starting.result()
    query.processAllAvailable()
    assert [item.captured.source for item in warm.agent.registry.all()] == ["foreachBatch"]
    options = {"checkpoint__policy": "Keep"} if temporary else {}
    assert len(warm.drain(**options)["queries"]) == 1
    assert ids_in(tmp_path / "out/good") == exactly(feed.ids)


def test_a_start_that_fails_changes_nothing_for_the_query_that_runs_there(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    running = start(warm.session, tmp_path, "one")
    running.processAllAvailable()
    other = warm.session.newSession()
    other.conf.set("spark.sql.streaming.stopActiveRunOnRestart", "false")
    same_checkpoint = writer(other, tmp_path, "another").option("checkpointLocation", str(tmp_path / "checkpoints/one"))
    with pytest.raises(Exception, match=r"Cannot start query|already active"):
        same_checkpoint.start()
    feed.add()
    running.processAllAvailable()
    with warm.requested() as asked:
        assert names(warm.drains.reaches(asked, "Drained")) == {"one"}
    assert ids_in(tmp_path / "out/one") == exactly(feed.ids)
    assert not ids_in(tmp_path / "out/another")


def test_what_starts_before_the_store_has_answered_is_noted(warm: Warm, tmp_path: Path, feed: Feed) -> None:
    """It may be what an earlier run has drained; see `Drain`, which then does not call it drained."""
    agent = warm.agent
    agent._looked = False
    start(warm.session, tmp_path, "early")
    with pytest.raises(IllegalArgumentException, match="already active"):
        writer(warm.session, tmp_path, "early").option("checkpointLocation", str(tmp_path / "checkpoints/refused")).start()
    with pytest.raises(IllegalArgumentException, match="already active"):
        start(warm.session, tmp_path, "early")
    agent.consider(agent.channel.requests.read())
    start(warm.session, tmp_path, "late")
    (early,) = agent.started_unasked.all()
    assert early == QueryStart(f"file:{tmp_path}/checkpoints/early", "early", "query 'early'")
    agent.started_unasked.take_back(early)
