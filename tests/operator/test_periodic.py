"""A thread that does the same again and again."""

import threading
from collections.abc import Callable

import pytest
from spark_drain_operator import periodic
from spark_drain_operator.periodic import Periodic


def counting(count: int) -> tuple[Callable[[], float], threading.Event]:
    """Return work that is due again in an hour, and what is set when it was done so often."""
    done, reached = [0], threading.Event()

    def work() -> float:
        done[0] += 1
        if done[0] == count:
            reached.set()
        return 3600.0

    return work, reached


def test_it_is_hastened_once_more_in_the_middle_of_a_call() -> None:
    begun, go_on = threading.Event(), threading.Event()
    work, twice = counting(2)

    def slow() -> float:
        begun.set()
        go_on.wait(10)
        return work()

    thread = Periodic("slow", slow)
    thread.start()
    assert begun.wait(10)
    thread.hasten()
    go_on.set()
    assert twice.wait(10)
    thread.stop()


def test_it_ends_while_it_waits() -> None:
    work, once = counting(1)
    thread = Periodic("waiting", work)
    thread.start()
    assert once.wait(10)
    thread.stop()
    thread._thread.join(10)
    assert not thread._thread.is_alive()


def test_a_defect_does_not_end_it(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(periodic, "_AFTER_A_DEFECT", 0.01)
    work, twice = counting(2)

    def failing() -> float:
        work()
        raise KeyError("metadata")

    thread = Periodic("failing", failing)
    thread.start()
    assert twice.wait(10)
    thread.stop()
    assert "failing: defect in the operator" in caplog.text
