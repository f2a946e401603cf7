"""Whose code a thread runs: the agent's own, which must not meet the agent's hooks, or a function that Spark or a drain has called."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

__all__ = ["as_agent", "as_callback", "in_callback", "is_agent", "side_by_side"]

_thread = threading.local()


@contextmanager
def as_agent() -> Iterator[None]:
    """Call PySpark unhooked within this block; functions of the application that Spark calls back from it stay hooked."""
    before = getattr(_thread, "agent", None)
    _thread.agent = _calls_from_java()
    try:
        yield
    finally:
        _thread.agent = before


def is_agent() -> bool:
    """Return whether the calling code is the agent's, in an `as_agent` block."""
    depth = getattr(_thread, "agent", None)
    return depth is not None and depth == _calls_from_java()


@contextmanager
def as_callback() -> Iterator[None]:
    """Call a function of the application that a drain waits for."""
    _thread.callback = True
    try:
        yield
    finally:
        _thread.callback = False


def in_callback() -> bool:
    """Return whether the calling code is a function that Spark or a drain has called, such as foreachBatch or a listener's.

    A drain may wait for such a function, so it must never be made to wait for a drain.
    """
    return bool(getattr(_thread, "callback", False)) or _calls_from_java() > 0


def side_by_side(calls: Sequence[Callable[[], None]], limit: int, name: str) -> None:
    """Make the agent's calls in threads of their own, so many at a time, and raise the first error when all are over.

    A program that ends does not wait for these threads, as it would for those of a ThreadPoolExecutor.
    """
    left, errors = deque(calls), list[BaseException]()

    def work() -> None:
        with as_agent():
            while True:
                try:
                    call = left.popleft()
                except IndexError:
                    return
                try:
                    call()
                except BaseException as error:
                    errors.append(error)

    threads = [threading.Thread(target=work, name=f"{name}-{number}", daemon=True) for number in range(min(limit, len(calls)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _calls_from_java() -> int:
    """Return how many calls from the JVM are on the stack: py4j makes them in threads of its own, or in one that waits for the JVM."""
    count, frame = 0, sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_call_proxy" and str(frame.f_globals.get("__name__", "")).startswith("py4j."):
            count += 1
        frame = frame.f_back  # type: ignore[assignment]  # None at the end
    return count
