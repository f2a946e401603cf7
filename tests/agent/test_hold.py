"""The gate that holds the user's threads."""

from __future__ import annotations

import threading
import time

from spark_drain_agent.hold import Gate, Phase


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
    gate.query_started()
    assert not gate.in_place(60)
    assert gate.in_place(0)
    with gate.user_waits():
        assert gate.user_is_waiting
        assert gate.in_place(60)
        with gate.user_waits():
            pass
        assert gate.user_is_waiting, "one of two waits is left"
    assert not gate.user_is_waiting
