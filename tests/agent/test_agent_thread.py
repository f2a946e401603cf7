"""Whose code a thread runs."""

from __future__ import annotations

import threading
import time

import pytest
from spark_drain_agent.agent_thread import as_agent, as_callback, in_callback, is_agent, side_by_side


def test_only_the_block_is_the_agents() -> None:
    seen: list[bool] = []
    assert not is_agent()
    with as_agent():
        assert is_agent()
        with as_agent():
            pass
        assert is_agent()
        other = threading.Thread(target=lambda: seen.append(is_agent()))
        other.start()
        other.join()
    assert not is_agent()
    assert seen == [False]


def test_a_function_that_a_drain_calls_is_a_callback() -> None:
    assert not in_callback()
    with as_callback():
        assert in_callback()
    assert not in_callback()


def test_calls_side_by_side_are_the_agents_and_so_many_at_once() -> None:
    running, most, names = 0, 0, set()
    lock = threading.Lock()

    def call(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            names.add(threading.current_thread().name)
        assert is_agent()
        assert threading.current_thread().daemon
        time.sleep(0.02)
        with lock:
            running -= 1
        return 2 * number

    assert side_by_side(call, range(5), 2, "together") == [0, 2, 4, 6, 8]
    assert most == 2
    assert names == {"together-0", "together-1"}


def test_an_error_is_raised_when_all_are_over() -> None:
    done: list[str] = []

    def call(what: str) -> None:
        if what == "fails":
            raise ValueError("no space left")
        done.append(what)

    with pytest.raises(ValueError, match="no space left"):
        side_by_side(call, ["fails", "other"], 1, "together")
    assert done == ["other"]


def test_without_a_thread_the_calling_one_makes_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert side_by_side(str, [1, 2, 3], 2, "together") == ["1", "2", "3"]
