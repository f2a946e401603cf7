"""The stand-in for a query that a drain keeps from starting."""

from __future__ import annotations

import threading
import time

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.agent_thread import as_callback
from spark_drain_agent.drain.ended import GivenUp
from spark_drain_agent.driver import held_query
from spark_drain_agent.driver.held_query import HeldQuery, HeldQueryError
from spark_drain_agent.gate import Gate, Phase

from tests.support.waiting import eventually


def never(_: bool) -> bool:
    return False


@pytest.fixture
def gate() -> Gate:
    gate = Gate()
    gate.turn(Phase.HELD)
    return gate


def test_it_is_a_query_with_the_drained_querys_id(gate: Gate) -> None:
    again, new = HeldQuery("orders", gate, never, "the id in the checkpoint"), HeldQuery("", gate, never)
    assert isinstance(again, StreamingQuery)
    assert again == again  # noqa: PLR0124  # as a list of queries compares them
    assert again in [new, again]
    assert again != new
    assert (again.id, again.name, again.isActive) == ("the id in the checkpoint", "orders", True)
    assert not again.recentProgress
    assert again.runId != again.id
    assert new.id
    assert str(again) == "<query orders held by spark-drain>"


def test_waiting_for_it_ends_with_the_drain(gate: Gate) -> None:
    query = HeldQuery("orders", gate, never)
    assert query.awaitTermination(0.05) is False
    threading.Timer(0.1, gate.turn, args=(Phase.OPEN,)).start()
    assert query.awaitTermination() is None
    assert not query.isActive
    assert query.awaitTermination(1) is True


def test_another_drain_does_not_hold_it_once_more(gate: Gate) -> None:
    query = HeldQuery("orders", gate, lambda _: False)
    for phase in (Phase.OPEN, Phase.DECIDING, Phase.HELD):
        gate.turn(phase)
    assert not query.isActive
    assert not query.is_listed
    assert query.awaitTermination(0.2) is True


def test_nothing_is_available_to_a_program_that_was_told_to_end(gate: Gate) -> None:
    query = HeldQuery("orders", gate, lambda stopped: stopped)
    query.processAllAvailable()
    assert query.isActive, "the program has not stopped it"


@pytest.mark.parametrize("wait", ["awaitTermination", "processAllAvailable"])
def test_it_fails_with_the_drain(gate: Gate, wait: str) -> None:
    query = HeldQuery("orders", gate, never, failure=GivenUp("the flush keeps failing", ValueError("sink is broken")).exception)
    assert query.exception() is None
    gate.turn(Phase.OPEN)
    with pytest.raises(StreamingQueryException, match="the flush keeps failing") as failed:
        getattr(query, wait)()
    assert isinstance(failed.value.__cause__, ValueError)
    assert str(query.exception()) == "the flush keeps failing"


@pytest.mark.parametrize("wait", ["awaitTermination", "processAllAvailable"])
def test_a_function_that_the_drain_may_wait_for_does_not_wait_for_it(gate: Gate, wait: str) -> None:
    query = HeldQuery("orders", gate, never)
    with as_callback():
        assert query.awaitTermination(0.05) is False
        with pytest.raises(HeldQueryError, match="query 'orders' was not started"):
            getattr(query, wait)()
        gate.turn(Phase.OPEN)
        getattr(query, wait)()


@pytest.mark.parametrize("how", ["isActive", "awaitTermination", "a long awaitTermination", "active", "lastProgress", "status"])
def test_a_function_that_the_drain_waits_for_does_not_ask_for_its_end_again_and_again(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """It may look at it, or wait a while."""
    monkeypatch.setattr(held_query, "_PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(held_query, "_PATIENCE_LOOKS", 2)
    with as_callback():
        query = HeldQuery("orders", gate, never)

    def ended() -> bool:
        if how in {"lastProgress", "status"}:
            getattr(query, how)
            return gate.phase is Phase.OPEN
        if how == "active":
            return not query.is_listed
        return not query.isActive if how == "isActive" else bool(query.awaitTermination(60 if how.startswith("a long") else 0.05))

    with as_callback():
        assert query.isActive
        assert query.awaitTermination(0.1) is False
        assert query.is_listed
    time.sleep(0.6)
    assert query.isActive, "a main loop asks for as long as it wants"
    assert query.is_listed
    with as_callback(), pytest.raises(HeldQueryError, match="query 'orders' was not started"):
        eventually(ended, "the query to end")
    gate.turn(Phase.OPEN)
    with as_callback():
        assert ended()


def test_each_call_of_such_a_function_may_look_at_it(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flush calls it again where its sink has failed."""
    monkeypatch.setattr(held_query, "_PATIENCE_SECONDS", 0.05)
    query = HeldQuery("orders", gate, never)
    for _ in range(3):
        with as_callback():
            assert query.isActive
        time.sleep(0.1)


def test_a_call_that_takes_long_may_look_at_it_now_and_then(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """It logs how a helper stands, writes for a while, and stops it where it is still active."""
    monkeypatch.setattr(held_query, "_PATIENCE_SECONDS", 0.05)
    query = HeldQuery("helper", gate, never)
    with as_callback():
        for _ in range(10):
            assert query.status["message"]
            assert query.isActive
            time.sleep(0.02)


def test_one_that_another_started_is_listed_for_as_long_as_somebody_looks(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_query, "_PATIENCE_SECONDS", -1)
    query = HeldQuery("orders", gate, never)
    with as_callback():
        assert query.is_listed
        assert query.is_listed


def test_a_batch_beside_the_drain_may_look_at_it_each_time(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a watchdog in a foreachBatch function: the drain does not wait for that."""
    monkeypatch.setattr(held_query, "_PATIENCE_SECONDS", -1)
    monkeypatch.setattr(held_query, "in_callback", lambda: True)
    monkeypatch.setattr(held_query, "is_drain_pane", lambda: False)
    query = HeldQuery("orders", gate, never)
    assert query.isActive
    assert query.awaitTermination(0.05) is False
    assert query.isActive
    monkeypatch.setattr(held_query, "is_drain_pane", lambda: True)
    monkeypatch.setattr(held_query, "_PATIENCE_LOOKS", 0)
    with pytest.raises(HeldQueryError):
        assert not query.isActive


def test_one_that_is_stopped_ends_where_the_program_is_told_to_end(gate: Gate) -> None:
    """Kubernetes deletes the pod of a driver that has been started again during a drain; its handler stops what it has started."""
    told = threading.Event()
    query = HeldQuery("orders", gate, lambda stopped: stopped and told.is_set())
    query.stop()
    assert query.isActive, "main stops its query in a loop, and a drain holds the driver"
    assert query.awaitTermination(0.05) is False
    threading.Timer(0.1, told.set).start()
    assert query.awaitTermination() is None
    query.processAllAvailable()
    assert not query.isActive


def test_it_ends_with_the_jvm(gate: Gate) -> None:
    lost = threading.Event()
    query = HeldQuery("orders", gate, lambda _: lost.is_set())
    threading.Timer(0.1, lost.set).start()
    assert query.awaitTermination() is None
    assert not query.isActive
