"""What a signal handler does with an event that its own thread is busy with."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from spark_drain_store.reentrant_event import ReentrantEvent

from tests.support.interrupting import interrupted_at_each_line

_USES: dict[str, Callable[[ReentrantEvent], object]] = {
    "is set": lambda event: event.is_set(),
    "waits": lambda event: event.wait(0.001),
    "sets": lambda event: event.set(),
}


@pytest.mark.parametrize("handler", _USES)
@pytest.mark.parametrize("use", ["waits", "sets"])
def test_a_handler_uses_it_at_any_moment(use: str, handler: str) -> None:
    def calls() -> tuple[Callable[[], object], Callable[[], object]]:
        event = ReentrantEvent()
        return lambda: _USES[use](event), lambda: _USES[handler](event)

    assert interrupted_at_each_line(calls, files=("reentrant_event.py", "threading.py")) > 5


def test_it_wakes_who_waits() -> None:
    event = ReentrantEvent()
    woken: list[bool] = []
    waiting = [threading.Thread(target=lambda: woken.append(event.wait(10))) for _ in range(3)]
    for thread in waiting:
        thread.start()
    assert event.wait(0.01) is False
    event.set()
    for thread in waiting:
        thread.join(10)
    assert woken == [True] * 3
    assert event.wait() is True
