"""Whose code a thread runs: the agent's own, which must not meet the agent's hooks, or a function that Spark or a drain has called."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

__all__ = [
    "NO_FLUSH_WITHOUT_THREADS",
    "NO_THREAD_STARTS",
    "as_agent",
    "as_callback",
    "as_listener",
    "callback_call",
    "in_callback",
    "in_drains_callback",
    "is_agent",
    "is_agents_thread",
    "no_thread_starts",
    "side_by_side",
]

_MAIN_HAS_ENDED = "main has ended, and Python, which from 3.12 on starts no thread from then on, waits for the other threads of the program"
NO_THREAD_STARTS = (
    f"{_MAIN_HAS_ENDED}; the queries run on. Start the program by `python -m spark_drain_agent` in place of attach(), or let main wait for "
    "those threads"
)
NO_FLUSH_WITHOUT_THREADS = (
    f"{_MAIN_HAS_ENDED}; no batch can call Python any more. End the program: the next start of the same version finishes it"
)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_thread = threading.local()
_NAME = "spark-drain"
"""What the names of the agent's threads begin with."""


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


def is_agents_thread() -> bool:
    """Return whether the calling thread is one that the agent has made."""
    return threading.current_thread().name.startswith(_NAME)


@contextmanager
def as_callback() -> Iterator[None]:
    """Call a function of the application that a drain waits for."""
    before = getattr(_thread, "callback", None)
    _thread.callback = object()
    try:
        yield
    finally:
        _thread.callback = before


@contextmanager
def as_listener() -> Iterator[None]:
    """Call a function of the application, in a thread of its own, that Spark has asked for."""
    _thread.listener = True
    try:
        yield
    finally:
        _thread.listener = False


def in_callback() -> bool:
    """Return whether the calling code is a function that Spark or a drain has called, such as foreachBatch or a listener's.

    A drain may wait for such a function, so it must never be made to wait for a drain.
    """
    return in_drains_callback() or getattr(_thread, "listener", False) or _calls_from_java() > 0


def in_drains_callback() -> bool:
    """Return whether the calling code is a function that a drain has called."""
    return getattr(_thread, "callback", None) is not None


def callback_call() -> object | None:
    """Return what tells this call of a function that Spark or a drain has called from every other one; None outside of such functions."""
    return getattr(_thread, "callback", None) or next(_frames_of_calls_from_java(), None)


def side_by_side(call: Callable[[_Item], _Result], items: Sequence[_Item], limit: int, name: str) -> list[_Result]:
    """Make the agent's calls in threads of their own, so many at a time, and return the results in order.

    A program that ends does not wait for these threads, and there are such as well once its main has ended, unlike those of a
    ThreadPoolExecutor. Where there can be no thread, it is the calling one that makes the calls.

    Parameters
    ----------
    call
        Is made with each item.
    items
        Its arguments.
    limit
        The number of threads.
    name
        What their names begin with.

    Raises
    ------
    BaseException
        The first error, once all calls are over.
    """
    left, results, errors = deque(enumerate(items)), dict[int, _Result](), list[BaseException]()

    def work() -> None:
        with as_agent():
            while True:
                try:
                    number, item = left.popleft()
                except IndexError:
                    return
                try:
                    results[number] = call(item)
                except BaseException as error:
                    errors.append(error)

    threads = []
    for number in range(min(limit, len(items))):
        thread = threading.Thread(target=work, name=f"{name}-{number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            break
        threads.append(thread)
    if not threads:
        work()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]


def no_thread_starts() -> bool:
    """Return whether Python is shutting down in that way: from 3.12 on it starts no thread then, though it waits for those that run."""
    if threading.main_thread().is_alive():
        return False
    try:
        threading.Thread(target=lambda: None, name="spark-drain-tried", daemon=True).start()
    except RuntimeError:
        return True
    return False


def _calls_from_java() -> int:
    """Return how many calls from the JVM are on the stack."""
    return sum(1 for _ in _frames_of_calls_from_java())


def _frames_of_calls_from_java() -> Iterator[FrameType]:
    """Return the frames of calls from the JVM, last one first: py4j makes them in threads of its own, or in one that waits for the JVM."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_call_proxy" and str(frame.f_globals.get("__name__", "")).startswith("py4j."):
            yield frame
        frame = frame.f_back
