"""The gate that holds the user's threads."""

from __future__ import annotations

import threading
import time

import pytest
from spark_drain_agent.gate import Gate, Phase


def test_open_lets_through_at_once() -> None:
    assert Gate().wait_while(Phase.HELD)


def test_waiting_has_an_end() -> None:
    gate = Gate()
    gate.turn(Phase.HELD)
    assert not gate.wait_while(Phase.HELD, 0.05)


def test_a_thread_waits_until_the_phase_changes() -> None:
    gate, passed = Gate(), threading.Event()
    gate.turn(Phase.HELD)

    def wait() -> None:
        gate.wait_while(Phase.HELD)
        passed.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not gate.user_is_waiting:
        time.sleep(0.005)
    assert not passed.is_set()
    gate.turn(Phase.OPEN)
    thread.join(10)
    assert passed.is_set()
    assert not gate.user_is_waiting


def test_any_other_phase_ends_a_wait() -> None:
    gate = Gate()
    gate.turn(Phase.DECIDING)
    thread = threading.Thread(target=gate.wait_while, args=(Phase.DECIDING,))
    thread.start()
    gate.turn(Phase.HELD)
    thread.join(10)
    assert not thread.is_alive()
    assert gate.phase is Phase.HELD


def test_in_place_means_waiting_or_quiet() -> None:
    gate = Gate()
    with gate.starting("a query"):
        assert not gate.in_place(0), "a start in flight is not quiet"
    assert not gate.in_place(60)
    assert gate.in_place(0)
    with gate.user_waits():
        assert gate.user_is_waiting
        assert gate.in_place(60)
        with gate.user_waits():
            pass
        assert gate.user_is_waiting, "one of two waits is left"
    assert not gate.user_is_waiting


def test_what_ended_and_is_started_again_is_no_new_query() -> None:
    """A supervisor that restarts a query that fails every few seconds has long started what it is going to start."""
    gate = Gate()
    with gate.starting("a query"):
        pass
    time.sleep(0.2)
    with gate.starting("the same query", again=True):
        assert not gate.in_place(0.2)
    assert gate.in_place(0.2)
    with gate.starting("another query"):
        pass
    assert not gate.in_place(0.2)


def test_a_thread_of_a_pool_that_waits_says_nothing_of_the_others_for_a_while() -> None:
    gate, over = Gate(), threading.Event()

    def wait() -> None:
        with gate.starting("a query"):
            pass
        with gate.user_waits():
            over.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    while not gate.user_is_waiting:
        time.sleep(0.005)
    assert not gate.in_place(60)
    with gate.starting("another one"):
        assert not gate.in_place(60)
        assert gate.in_place(0), "its first start was long ago"
    with gate.user_waits(for_any=True):
        assert not gate.in_place(60)
    with gate.user_waits():
        assert gate.in_place(60)
    over.set()
    thread.join(10)


def test_who_waits_before_a_query_was_started_waits_for_one() -> None:
    gate = Gate()
    assert not gate.waits_in_vain(0)
    with gate.user_waits():
        assert not gate.waits_in_vain(60)
        assert gate.waits_in_vain(0)
        with gate.starting("a query"):
            assert not gate.waits_in_vain(0)


def test_a_start_in_flight_keeps_the_gate_from_holding() -> None:
    gate = Gate()
    gate.turn(Phase.DECIDING)
    with gate.starting("a query") as free:
        assert free
        assert gate.starts_in_flight() == ["a query"]
        assert not gate.hold(lambda: True)
    assert not gate.hold(lambda: False), "what was planned has changed"
    assert gate.phase is Phase.DECIDING
    assert gate.hold(lambda: True)
    assert gate.holds("a query")
    with gate.starting("another") as free:
        assert not free
        assert not gate.starts_in_flight()


def test_what_does_not_concern_a_drain_is_not_kept_from_starting() -> None:
    gate = Gate()
    gate.turn(Phase.DECIDING, lambda item: item == "drained")
    with gate.starting("beside"):
        assert gate.hold(lambda: True)
    with gate.starting("beside") as beside, gate.starting("drained") as drained:
        assert (beside, drained) == (True, False)
    assert (gate.holds("beside"), gate.holds("drained")) == (False, True)
    gate.turn(Phase.OPEN)
    assert not gate.holds("drained")


@pytest.mark.parametrize(("item", "waits"), [("drained", True), ("beside", False)])
def test_a_start_lets_a_drain_decide_for_a_while(item: str, waits: bool) -> None:
    gate = Gate()
    gate.turn(Phase.DECIDING, lambda item: item == "drained")
    begun = time.monotonic()
    gate.wait_for_decision(item, 0.2)
    assert (time.monotonic() - begun >= 0.2) == waits


def test_turns_tell_whether_a_phase_came_and_went() -> None:
    gate = Gate()
    before = gate.turns
    gate.turn(Phase.DECIDING)
    gate.turn(Phase.OPEN)
    assert gate.turns == before + 2


def test_no_drain_holds_a_program_that_leaves() -> None:
    gate = Gate()
    gate.turn(Phase.DECIDING)
    assert not gate.leaving
    assert gate.leave()
    assert gate.leaving
    assert not gate.hold(lambda: True)
