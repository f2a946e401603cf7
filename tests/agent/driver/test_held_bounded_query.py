"""The stand-in for a bounded query that a drain keeps from starting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.agent_thread import as_callback
from spark_drain_agent.drain.ended import GivenUp
from spark_drain_agent.driver.held_bounded_query import HeldBoundedQuery
from spark_drain_agent.driver.held_query import HeldQuery
from spark_drain_agent.gate import Gate, Phase
from spark_drain_agent.start_waits import begin_launch, given_up_when, pause

from tests.agent.driver.streams import TurningGate, running
from tests.support.interrupting import interrupted_at_each_line


@pytest.fixture
def gate() -> Gate:
    gate = Gate()
    gate.turn(Phase.HELD)
    return gate


def held(
    gate: Gate,
    begin: Callable[[], StreamingQuery],
    over: Callable[[bool], bool] = lambda _: False,
    failure: Callable[[], StreamingQueryException | None] = lambda: None,
) -> HeldBoundedQuery:
    return HeldBoundedQuery("orders", gate, over, "", failure, begin=begin)


def begun() -> StreamingQuery:
    """Return a query that has ended well."""
    return HeldQuery("begun", Gate(), lambda _: False, "the id in the checkpoint")


def refused() -> StreamingQuery:
    raise ValueError("no such folder")


def test_it_is_started_once(gate: Gate) -> None:
    starts: list[threading.Thread] = []

    def begin() -> StreamingQuery:
        starts.append(threading.current_thread())
        time.sleep(0.2)
        return begun()

    query = held(gate, begin)
    assert query.isActive
    assert query.exception() is None
    assert query.awaitTermination(0.05) is False
    waiting = [threading.Thread(target=query.awaitTermination) for _ in range(5)]
    for each in waiting:
        each.start()
    time.sleep(0.2)
    assert not starts
    gate.turn(Phase.OPEN)
    assert query.awaitTermination(0.05) is False
    assert query.isActive, "it will be started"
    for _ in range(2):
        query.start_if_due()
    for each in waiting:
        each.join(10)
    assert len(starts) == 1
    assert query.id == "the id in the checkpoint"
    assert (query.isActive, query.exception(), query.awaitTermination(1)) == (False, None, True)


def test_nobody_takes_it_for_done_in_the_middle_of_its_start(gate: Gate) -> None:
    """The start itself tells the stand-ins of its checkpoint that it was made."""
    going_on = threading.Event()

    def begin() -> StreamingQuery:
        if query.is_due:
            query.stop()
        going_on.wait(10)
        return begun()

    query = held(gate, begin)
    gate.turn(Phase.OPEN)
    waiting = [threading.Thread(target=wait) for wait in (query.start_if_due, query.awaitTermination)]
    for each in waiting:
        each.start()
    time.sleep(0.3)
    assert query.isActive
    assert query.exception() is None
    assert query.awaitTermination(0.05) is False, "a limit is one, however long the start takes"
    assert all(each.is_alive() for each in waiting)
    going_on.set()
    for each in waiting:
        each.join(10)
    assert not query.isActive
    assert query.id == "the id in the checkpoint"


def test_it_fails_with_its_start(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    query = held(gate, refused)
    gate.turn(Phase.OPEN)
    query.start_if_due()
    assert "the start of query 'orders', which a drain had put off, has failed: no such folder" in caplog.text
    assert not query.isActive
    for wait in (query.awaitTermination, query.processAllAvailable):
        with pytest.raises(ValueError, match="no such folder"):
            wait()
    assert str(query.exception()) == "no such folder"


def test_a_function_of_a_batch_may_wait_for_it_in_another_drain_once_it_has_begun(gate: Gate) -> None:
    made = HeldQuery("begun", Gate(), lambda _: False)
    query = held(gate, lambda: made)
    gate.turn(Phase.OPEN)
    query.start_if_due()
    gate.turn(Phase.HELD)
    with as_callback():
        assert query.awaitTermination() is None


def test_it_is_not_started_where_the_application_has_stopped_it(gate: Gate) -> None:
    query = held(gate, refused)
    query.stop()
    assert query.exception() is None
    gate.turn(Phase.OPEN)
    query.start_if_due()
    assert query.awaitTermination() is None
    assert (query.isActive, query.exception()) == (False, None)


def test_it_has_not_ended_while_the_start_amid_which_it_was_stopped_is_under_way(gate: Gate) -> None:
    """Spark has its name until then."""
    starts, goes_on = threading.Event(), threading.Event()

    def begin() -> StreamingQuery:
        starts.set()
        goes_on.wait(10)
        return begun()

    query = held(gate, begin)
    gate.turn(Phase.OPEN)
    threading.Thread(target=query.start_if_due).start()
    starts.wait(10)
    stopping = threading.Thread(target=query.stop)
    stopping.start()
    assert query.awaitTermination(0.3) is False
    assert query.isActive
    goes_on.set()
    stopping.join(10)
    assert query.awaitTermination(5) is True
    assert not query.isActive


@pytest.mark.parametrize("stops", [True, False])
def test_another_drain_holds_it_only_where_it_is_still_to_be_started(gate: Gate, stops: bool) -> None:
    query = held(gate, begun)
    if stops:
        query.stop()
    for phase in (Phase.OPEN, Phase.DECIDING, Phase.HELD):
        gate.turn(phase)
    assert (query.isActive, query.is_listed) == (not stops, not stops)
    assert query.awaitTermination(0.2) is stops


def test_it_is_stopped_where_the_application_stops_it_in_its_start(gate: Gate) -> None:
    """When `stop()` returns, the name is free for another start."""
    made, starts = HeldQuery("begun", gate, lambda stopped: stopped), threading.Event()

    def begin() -> StreamingQuery:
        starts.set()
        time.sleep(0.5)
        return made

    query = held(gate, begin)
    threading.Thread(target=query.start_if_due).start()
    starts.wait(10)
    query.stop()
    assert not made.isActive
    assert (query.isActive, query.exception(), query.awaitTermination(1)) == (False, None, True)


def test_a_start_that_waits_is_given_up_where_the_application_stops_it(gate: Gate) -> None:
    starts = threading.Event()

    def begin() -> StreamingQuery:
        starts.set()
        with given_up_when(lambda: False):
            pause(60)
        return begun()

    query = held(gate, begin)
    threading.Thread(target=query.start_if_due).start()
    starts.wait(10)
    since = time.monotonic()
    query.stop()
    assert time.monotonic() - since < 10
    gate.turn(Phase.OPEN)
    assert (query.isActive, query.exception(), query.awaitTermination(1)) == (False, None, True)


def test_it_fails_with_the_drain(gate: Gate) -> None:
    query = held(gate, refused, failure=GivenUp("the flush keeps failing", ValueError("sink is broken")).exception)
    gate.turn(Phase.OPEN)
    assert not query.isActive
    assert str(query.exception()) == "the flush keeps failing"
    with pytest.raises(StreamingQueryException, match="the flush keeps failing"):
        query.awaitTermination()


@pytest.mark.parametrize("wait", ["awaitTermination", "processAllAvailable"])
def test_a_program_that_was_told_to_end_learns_that_nothing_was_read(gate: Gate, wait: str) -> None:
    query = held(gate, refused, over=lambda stopped: stopped)
    assert query.isActive
    with pytest.raises(StreamingQueryException, match="query 'orders' was not started, and has read nothing"):
        getattr(query, wait)()


def test_without_a_jvm_it_has_failed(gate: Gate) -> None:
    query = held(gate, refused, over=lambda _: True)
    assert not query.isActive
    assert "has read nothing" in str(query.exception())


ASKED: dict[str, tuple[Callable[[StreamingQuery], object], object]] = {
    "isActive": (lambda query: query.isActive, True),
    "exception": (lambda query: query.exception(), None),
    "awaitTermination": (lambda query: query.awaitTermination(cast(int, 0.05)), False),
}


@pytest.mark.parametrize("reading", range(1, 8))
@pytest.mark.parametrize("anew", [False, True], ids=["let go", "held anew"])
@pytest.mark.parametrize("asked", ASKED)
def test_nobody_takes_it_for_done_in_the_moment_in_which_the_drain_lets_go(asked: str, anew: bool, reading: int) -> None:
    ask, answer = ASKED[asked]
    query = held(TurningGate({reading: Phase.OPEN, reading + 1: Phase.HELD if anew else Phase.OPEN}), running)
    for _ in range(6):
        assert ask(query) is answer


@pytest.mark.parametrize("started", [True, False])
def test_it_gives_way_to_a_start_of_the_application_in_its_place(gate: Gate, started: bool) -> None:
    """Seen: it was launched behind the other one, which Spark stopped then, and was stopped itself; none of the two read."""
    launches: list[str] = []

    def begin() -> StreamingQuery:
        begin_launch()
        launches.append("late")
        return begun()

    query = held(gate, begin)
    gate.turn(Phase.OPEN)
    late = threading.Thread(target=query.start_if_due)
    try:
        with query.giving_way():
            late.start()
            late.join(0.5)
            assert query.isActive
            assert not launches
            if not started:
                raise ValueError("no such folder")
    except ValueError:
        pass
    late.join(10)
    assert launches == ([] if started else ["late"])
    assert (query.isActive, query.exception(), query.awaitTermination(1)) == (False, None, True)
    assert query.is_started is not started


@pytest.mark.parametrize("started", [True, False])
def test_a_start_of_the_application_that_takes_too_long_is_told_of(gate: Gate, monkeypatch: pytest.MonkeyPatch, started: bool) -> None:
    """Seen: the wait for it returned as if all had been read, a few seconds before that start failed."""
    monkeypatch.setattr("spark_drain_agent.driver.held_bounded_query._LONGEST_START_SECONDS", 0.1)

    def begin() -> StreamingQuery:
        begin_launch()
        return begun()

    query = held(gate, begin)
    gate.turn(Phase.OPEN)
    with suppress(ValueError), query.giving_way():
        query.start_if_due()
        with pytest.raises(StreamingQueryException, match=r"'orders' was not started, and has read nothing: .* takes longer than"):
            query.awaitTermination()
        if not started:
            raise ValueError("no such folder")
    assert not query.isActive
    assert "was not started" in str(query.exception())


@pytest.mark.parametrize("handler", [HeldBoundedQuery.stop, lambda query: query.awaitTermination(0.01)], ids=["stop", "wait"])
def test_a_signal_handler_may_come_at_any_moment_of_a_wait(handler: Callable[[HeldBoundedQuery], object]) -> None:
    """Seen: SIGUSR1 every 0.5 ms, whose handler awaited what main awaited; a lock that main had was waited for, for ever."""

    def calls() -> tuple[Callable[[], object], Callable[[], object]]:
        awaited: list[bool] = []

        def begin() -> StreamingQuery:
            while not awaited:
                time.sleep(0.001)
            time.sleep(0.03)
            return begun()

        def wait() -> None:
            awaited.append(True)
            query.awaitTermination(0.02)

        query = held(Gate(), begin)
        threading.Thread(target=query.start_if_due).start()
        return wait, lambda: handler(query)

    assert interrupted_at_each_line(calls, files=("/held_bounded_query.py", "/threading.py", "/reentrant_event.py")) > 20


def test_a_start_of_the_application_comes_behind_a_launch_under_way(gate: Gate) -> None:
    events: list[str] = []
    launching, go_on = threading.Event(), threading.Event()

    def begin() -> StreamingQuery:
        begin_launch()
        launching.set()
        go_on.wait(10)
        events.append("late")
        return begun()

    query = held(gate, begin)
    gate.turn(Phase.OPEN)
    late = threading.Thread(target=query.start_if_due)
    late.start()
    assert launching.wait(10)
    threading.Timer(0.5, go_on.set).start()
    with query.giving_way():
        events.append("own")
    late.join(10)
    assert events == ["late", "own"]
    assert query.is_started
