"""Waits for queries, with queries that say what a test wants: no Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from threading import Event, Thread, Timer, current_thread
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager
from spark_drain_agent.drain.identity import Identity
from spark_drain_agent.driver import agent as agent_module
from spark_drain_agent.driver import attach
from spark_drain_agent.driver.agent import Agent
from spark_drain_agent.driver.held_query import HeldQuery
from spark_drain_agent.driver.query_hooks import hook_queries
from spark_drain_agent.gate import Gate, Phase
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.errors import UnsupportedSparkError
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import Channel

from tests.agent.driver.streams import TurningGate, in_thread, running
from tests.agent.harness import eventually
from tests.agent.warm import HOOKED

_ME = Identity(run_id="run", pod_name="", pod_uid="", spark_version="4.2.0", agent_version="0.1.0")


class SlowToSay:
    """The execution of a query that was told to end, and has not ended yet, in a JVM that takes its time to say so."""

    @property
    def thread_alive(self) -> bool:
        time.sleep(0.1)
        return True


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Return the agent that the hooks ask in this test."""
    for holder, names in HOOKED:
        for name in names:
            monkeypatch.setattr(holder, name, vars(holder)[name])
    monkeypatch.setattr(attach, "_agent", None)  # one of another test, whose hooks these are on top of
    internals = SimpleNamespace(is_in_jvm=lambda _: True, live=lambda _: SlowToSay(), jvm_ended=False, stop_returned=False)
    agent = Agent(cast(SparkInternals, internals), Channel.in_memory(), _ME)
    hook_queries(lambda: agent)
    return agent


class Failed(StreamingQueryException):
    """What a failed query is told with, made without a JVM."""

    def __init__(self) -> None:
        return

    def __str__(self) -> str:
        return "out of milk"


class TimeIsUpError(Exception):
    """What a signal handler raises."""


@pytest.mark.parametrize("raised", [TimeIsUpError, Py4JError])
@pytest.mark.parametrize("wait", ["awaitTermination", "awaitAnyTermination", "processAllAvailable"])
def test_what_a_signal_handler_raises_ends_a_wait_that_a_drain_has_just_made_its_own(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, wait: str, raised: type[Exception]
) -> None:
    """It is no failure of a flush that the drain makes good; py4j puts its own exception in the place of any other in its midst."""

    def interrupted(*_: Any) -> None:
        agent.gate.turn(Phase.HELD)
        raise raised

    for name in ("shields", "was_drained"):
        monkeypatch.setattr(agent.held, name, lambda _: agent.gate.phase is Phase.HELD)
    waits = SimpleNamespace(**{wait: interrupted})
    waiting = StreamingQueryManager(waits) if wait == "awaitAnyTermination" else StreamingQuery(waits)
    with pytest.raises(raised):
        in_thread(getattr(waiting, wait), 5)


@pytest.mark.parametrize("fails", [False, True], ids=["stopped", "failed"])
def test_a_wait_whose_time_is_over_says_what_spark_says(agent: Agent, fails: bool) -> None:
    """Of a query that was told to end, or has failed, and has not come to its end."""

    def wait(milliseconds: int) -> bool:
        time.sleep(milliseconds / 1000)
        if fails:
            raise Failed
        return True

    seconds: Any = 0.55
    query = StreamingQuery(SimpleNamespace(awaitTermination=wait, runId=lambda: SimpleNamespace(toString=str)))
    assert agent.gate.phase is Phase.OPEN
    if not fails:
        assert query.awaitTermination(seconds) is True
        return
    with pytest.raises(StreamingQueryException, match="out of milk"):
        query.awaitTermination(seconds)


def stopped(seconds: float) -> SimpleNamespace:
    """Return a query that was told to end, of which Spark says after the time limit that it is not active."""

    def wait(milliseconds: int) -> bool:
        time.sleep(milliseconds / 1000)
        return True

    return SimpleNamespace(awaitTermination=wait, ends=time.monotonic() + seconds)


def failed() -> SimpleNamespace:
    """Return a query that has failed."""

    def wait(_: int) -> bool:
        raise Failed

    return SimpleNamespace(awaitTermination=wait, ends=0.0)


@pytest.mark.parametrize("fails", [False, True], ids=["stopped", "another one fails"])
def test_a_query_beside_a_held_one_counts_once_it_has_ended(agent: Agent, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    ended = [StreamingQuery(execution) for execution in ([failed(), stopped(60)] if fails else [stopped(1.2)])]
    live = lambda query: SimpleNamespace(thread_alive=time.monotonic() < query._jsq.ends)  # noqa: E731
    monkeypatch.setattr(agent.internals, "live", live)
    monkeypatch.setattr(agent.held, "_ended", lambda _: [SimpleNamespace(query=query) for query in ended])
    monkeypatch.setattr(agent.held, "any_let_end", lambda _: False)
    agent.gate.turn(Phase.HELD)
    begun = time.monotonic()
    streams = StreamingQueryManager(SimpleNamespace())
    if fails:
        with pytest.raises(StreamingQueryException, match="out of milk"):
            in_thread(streams.awaitAnyTermination, 5)
    else:
        in_thread(streams.awaitAnyTermination, 5)
        assert time.monotonic() - begun >= 1.2


def put_off(agent: Agent, gate: Gate, monkeypatch: pytest.MonkeyPatch, begin: Callable[[], StreamingQuery]) -> HeldQuery:
    """Return the bounded query that a drain has put off."""
    monkeypatch.setattr(agent, "gate", gate)
    monkeypatch.setattr(agent.held, "forget_flush", lambda _: None)
    monkeypatch.setattr(agent.held.stand_ins, "_forget_flush", lambda _: None)
    monkeypatch.setattr(agent.held, "ended_beside", lambda _: [])
    captured = SimpleNamespace(query_name="orders")
    internals = SimpleNamespace(session=SimpleNamespace(streams=None), started_like=lambda *_: [], stopped=False)
    found = {"captured": captured, "label": "orders", "location": None, "noted_id": lambda: "", "internals": internals}
    tracked = SimpleNamespace(**found, belongs_to=lambda _: True)
    return agent.held.stand_ins.put_off(cast(TrackedQuery, tracked), begin)


@pytest.mark.parametrize("reading", range(1, 8))
def test_a_query_that_a_drain_has_put_off_is_listed_until_it_runs(agent: Agent, monkeypatch: pytest.MonkeyPatch, reading: int) -> None:
    listed: list[Any] = []

    def begin() -> StreamingQuery:
        assert len(streams.active) == 1
        listed.append(SimpleNamespace(id=lambda: SimpleNamespace(toString=lambda: "begun")))
        return running()

    query = put_off(agent, TurningGate({reading: Phase.OPEN}), monkeypatch, begin)
    streams = StreamingQueryManager(SimpleNamespace(active=lambda: listed))
    assert all(len(streams.active) == 1 for _ in range(8))
    query.start_if_due()
    assert len(streams.active) == 1


def test_a_query_that_a_drain_has_put_off_is_listed_once_in_the_moment_in_which_spark_has_it(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on, listed = Event(), Event(), list[Any]()

    def begin() -> StreamingQuery:
        listed.append(SimpleNamespace(id=lambda: SimpleNamespace(toString=lambda: "begun")))
        begun.set()
        goes_on.wait(10)
        return running()

    def spark_lists() -> list[Any]:
        if not listed:
            Thread(target=query.start_if_due, daemon=True).start()
            begun.wait(10)
        return listed

    query = put_off(agent, TurningGate({}), monkeypatch, begin)
    (tracked, _), *_ = agent.held.stand_ins._unstarted()
    monkeypatch.setattr(tracked.internals, "started_like", lambda *_: [StreamingQuery(execution) for execution in listed])
    agent.gate.turn(Phase.OPEN)
    assert StreamingQueryManager(SimpleNamespace(active=spark_lists)).active == [query]
    goes_on.set()


@pytest.mark.parametrize("reading", range(1, 12))
def test_a_query_that_a_drain_has_put_off_is_awaited_among_any(agent: Agent, monkeypatch: pytest.MonkeyPatch, reading: int) -> None:
    drained, ended, listed = [True], Event(), list[Any]()

    def begin() -> StreamingQuery:
        listed.append(SimpleNamespace(id=lambda: SimpleNamespace(toString=lambda: "begun")))
        return running()

    query = put_off(agent, TurningGate({reading: Phase.OPEN}), monkeypatch, begin)
    for holder, name in ((agent.held, "forget_flush"), (agent.held.stand_ins, "_forget_flush")):
        monkeypatch.setattr(holder, name, lambda _: drained.clear())

    def let_go() -> None:
        agent.gate.turn(Phase.OPEN)
        query.start_if_due()
        time.sleep(0.2)
        ended.set()

    Timer(0.8, let_go).start()
    streams = StreamingQueryManager(SimpleNamespace(awaitAnyTermination=lambda _: bool(drained) or ended.wait(0.1), active=lambda: listed))
    in_thread(streams.awaitAnyTermination, 10)
    assert ended.is_set()


@pytest.mark.parametrize("before", ["the gate opens", "a start that was put off"])
def test_a_query_that_fails_as_the_flush_is_forgotten_is_told_of(agent: Agent, monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    """Between the look at what has ended and Spark's own: it tells of it no more."""
    ended: list[Any] = []
    forgets = SimpleNamespace(resetTerminated=lambda: ended.append(SimpleNamespace(query=StreamingQuery(failed()))))
    streams = StreamingQueryManager(SimpleNamespace(awaitAnyTermination=lambda _: False, active=list, **vars(forgets)))
    monkeypatch.setattr(agent.held, "_ended", lambda _: list(ended))
    monkeypatch.setattr(agent.held, "is_ending", lambda _: False)
    monkeypatch.setattr(agent.internals, "manager_id", id, raising=False)
    if before == "the gate opens":
        session = SimpleNamespace(streams=streams)
        running_beside = SimpleNamespace(query=running(), ended=False, internals=SimpleNamespace(session=session))
        monkeypatch.setattr(agent.registry, "all", lambda: [running_beside])
        agent.held.forget_drained()
    else:
        pending = SimpleNamespace(is_pending=True)
        monkeypatch.setattr(agent.held.stand_ins, "of", lambda _: [pending])
    with pytest.raises(StreamingQueryException, match="out of milk"):
        in_thread(streams.awaitAnyTermination, 5)


def test_a_stand_in_of_an_earlier_drain_is_no_query_of_a_later_one(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not listed in the place of the query that runs, nor does its end of then end a wait for any."""
    query = put_off(agent, TurningGate({}), monkeypatch, running)
    query.stop()
    for phase in (Phase.OPEN, Phase.HELD):
        agent.gate.turn(phase)
    streams = StreamingQueryManager(SimpleNamespace(active=list, get=lambda _: None))
    assert streams.active == []
    assert streams.get(query.id) is None
    seconds: Any = 0.8
    assert in_thread(lambda: streams.awaitAnyTermination(seconds)) is False


def test_a_start_that_fails_while_any_query_is_awaited_is_told_of(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark has nothing that could end, and says so at the end of a wait in the midst of which the start has failed."""

    def begin() -> StreamingQuery:
        raise Failed

    query = put_off(agent, TurningGate({}), monkeypatch, begin)
    agent.gate.turn(Phase.OPEN)
    streams = StreamingQueryManager(SimpleNamespace(awaitAnyTermination=lambda _: query.start_if_due(), active=list))
    with pytest.raises(StreamingQueryException, match="out of milk"):
        in_thread(streams.awaitAnyTermination, 5)


def test_a_start_that_has_failed_before_another_drain_is_told_of_in_it(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin() -> StreamingQuery:
        raise Failed

    query = put_off(agent, TurningGate({}), monkeypatch, begin)
    streams = StreamingQueryManager(SimpleNamespace(active=list))
    agent.gate.turn(Phase.OPEN)
    query.start_if_due()
    agent.gate.turn(Phase.HELD)
    assert streams.active == []
    with pytest.raises(StreamingQueryException, match="out of milk"):
        in_thread(streams.awaitAnyTermination, 5)


def test_a_query_that_was_put_off_and_has_begun_is_not_that_of_a_later_drain(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    query = put_off(agent, TurningGate({}), monkeypatch, running)
    streams = StreamingQueryManager(SimpleNamespace(active=list))
    assert streams.active == [query]
    agent.gate.turn(Phase.OPEN)
    query.start_if_due()
    assert not agent.held.nothing_will_end(streams)
    agent.gate.turn(Phase.HELD)
    assert streams.active == []


@pytest.mark.parametrize(
    ("locations", "same_session", "takes"),
    [
        (("/here", "/here"), False, True),
        ((None, None), True, True),  # each start of it has another folder
        ((None, None), False, False),
        (("/here", "/there"), True, False),  # Spark refuses one of them, and says so
        ((None, "/there"), True, False),
        (("/here", None), True, False),
    ],
)
def test_a_start_takes_the_place_of_what_was_put_off(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, locations: tuple[str | None, str | None], same_session: bool, takes: bool
) -> None:
    """Seen: one of the same name on another checkpoint was not started, and its wait returned as if it had read."""
    query = put_off(agent, TurningGate({}), monkeypatch, running)
    (tracked, _), *_ = agent.held.stand_ins._unstarted()
    monkeypatch.setattr(tracked, "belongs_to", lambda _: same_session)
    monkeypatch.setattr(tracked, "location", locations[0])
    started = SimpleNamespace(captured=tracked.captured, location=locations[1], internals=tracked.internals)
    agent.held.stand_ins.forget_after_start(cast(TrackedQuery, started))
    assert query.is_pending is not takes


def test_a_late_start_waits_until_there_are_threads(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one Py4J could not call the application back in it, and would not do so any more (seen with RLIMIT_NPROC)."""
    names, refusals, start = list[str](), iter(range(2)), Thread.start

    def begin() -> StreamingQuery:
        names.append(current_thread().name)
        return running()

    def refused(self: Thread) -> None:
        if self.name == "spark-drain-start" and next(refusals, None) is not None:
            raise RuntimeError("can't start new thread")
        start(self)

    query = put_off(agent, TurningGate({}), monkeypatch, begin)
    agent.gate.turn(Phase.OPEN)
    with monkeypatch.context() as patched:
        patched.setattr(Thread, "start", refused)
        agent.held.stand_ins.begin_what_is_due(patience=30)
    eventually(lambda: query.is_started, "the query to be started")
    assert names == ["spark-drain-start"]


@pytest.mark.parametrize("same", [True, False])
def test_a_start_that_has_failed_is_told_of_until_the_query_is_started_again(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    def begin() -> StreamingQuery:
        raise Failed

    query = put_off(agent, TurningGate({}), monkeypatch, begin)
    (tracked, _), *_ = agent.held.stand_ins._unstarted()
    agent.gate.turn(Phase.OPEN)
    query.start_if_due()
    captured = tracked.captured if same else SimpleNamespace(query_name="payments")
    started = SimpleNamespace(captured=captured, location=tracked.location if same else "/there", internals=tracked.internals)
    agent.held.stand_ins.forget_after_start(cast(TrackedQuery, started))
    streams = StreamingQueryManager(SimpleNamespace(awaitAnyTermination=lambda _: True, active=list))
    if same:
        in_thread(streams.awaitAnyTermination, 5)
        return
    with pytest.raises(StreamingQueryException, match="out of milk"):
        in_thread(streams.awaitAnyTermination, 5)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("main fails", True),
        ("main fails before the point of no return", False),
        ("Ctrl-C ends it", False),
        ("a forked child fails", False),
        ("the JVM has ended", False),
    ],
)
def test_a_driver_is_said_to_stay_only_where_it_does(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, case: str, said: bool
) -> None:
    monkeypatch.setattr(agent, "_wait_while", lambda waits_for, _: monkeypatch.setattr(agent, "_let_go", waits_for is Phase.HELD))
    monkeypatch.setattr(agent, "_process", -1 if case.startswith("a forked child") else os.getpid())
    monkeypatch.setattr(agent.internals, "jvm_ended", case.startswith("the JVM"))
    monkeypatch.setattr(agent_module, "ends_for_a_signal", lambda: case.startswith("Ctrl-C"))
    agent.gate.turn(Phase.DECIDING if "before" in case else Phase.HELD)
    agent.hold_exit(failed=True, for_good=False)
    assert ("the application has failed" in caplog.text) is said


@pytest.mark.parametrize("forked", [False, True])
def test_a_query_that_a_forked_process_starts_is_told_of(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, forked: bool
) -> None:
    """The thread that looks for requests is in the process that has made the session."""
    begun: list[str] = []
    monkeypatch.setattr(agent, "_process", os.getpid() - forked)
    monkeypatch.setattr(agent, "_watch", SimpleNamespace(go_on=lambda: begun.append("the watch"), runs=True))
    started = object()
    captured = Mock(side_effect=UnsupportedSparkError("no such writer"))
    assert agent.start_query(agent.internals, captured, lambda: cast("StreamingQuery", started)) is started
    assert ("fork first" in caplog.text, begun) == (forked, [] if forked else ["the watch"])


def test_the_end_of_python_does_not_wait_anew_for_a_drain_that_decides(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "LET_DECIDE_SECONDS", 0.5)
    agent.gate.turn(Phase.DECIDING)
    begun = time.monotonic()
    agent.hold_exit(failed=True, for_good=False)
    assert time.monotonic() - begun >= 0.5
    begun = time.monotonic()
    agent.hold_exit()
    assert time.monotonic() - begun < 0.4


@pytest.mark.parametrize(
    ("error", "thread_is_main", "starts"),
    [
        (Py4JError("An error occurred while calling o287.get"), True, False),
        (Py4JError("An error occurred while calling o287.get"), False, True),
        (Py4JError("An error occurred while calling o287.get. Trace:\npy4j.Py4JException: Method get([]) does not exist"), True, True),
        (UnsupportedSparkError("no such writer"), True, True),
    ],
    ids=["of a signal handler", "in another thread", "no such method", "another Spark"],
)
def test_what_a_signal_handler_raises_in_a_start_reaches_the_application(
    agent: Agent, error: Exception, thread_is_main: bool, starts: bool
) -> None:
    """Py4J makes it an error of its own, as in a start without the agent."""
    begin = partial(agent.start_query, agent.internals, Mock(side_effect=error), lambda: cast("StreamingQuery", "started"))
    if not starts:
        with pytest.raises(Py4JError, match="while calling o287"):
            begin()
    else:
        assert (begin() if thread_is_main else in_thread(begin, 10)) == cast("StreamingQuery", "started")


def test_what_a_signal_handler_raises_after_a_start_reaches_the_application(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent.registry, "let_go", Mock(side_effect=Py4JError("An error occurred while calling o287.get")))
    with pytest.raises(Py4JError, match="while calling o287"):
        agent.let_go()
    in_thread(agent.let_go, 10)
