"""Functions of the application that a drain calls: before anything is flushed, and after everything was (Samza's onDrain)."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, overload

from spark_drain_store import QueryReport

from spark_drain_agent.agent_thread import as_callback
from spark_drain_agent.clock import monotonic
from spark_drain_agent.spark_internals.errors import in_words

__all__ = ["CallbackError", "DrainContext", "call_back", "on_drain"]

When = Literal["before", "after"]
_POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class DrainContext:
    """What a callback is told.

    Parameters
    ----------
    drain_id
        The drain. A callback can be called again for the same one, after a restart of the driver.
    run_id
        ``spark.app.id`` of this run.
    mode
        ``Drain``, ``CatchUp`` or ``Stop``.
    queries
        The queries that are drained; ``end_offsets``, ``flush_batch_id`` and ``archive`` are known after the flush.
    """

    drain_id: str
    run_id: str
    mode: str
    queries: tuple[QueryReport, ...]


Callback = Callable[[DrainContext], object]


@dataclass(frozen=True)
class _Registered:
    callback: Callback
    when: When
    timeout_seconds: float

    @property
    def name(self) -> str:
        return str(getattr(self.callback, "__qualname__", self.callback))


_registered: list[_Registered] = []


class CallbackError(Exception):
    """A callback raised or took too long; the message names it."""


@overload
def on_drain(callback: Callback) -> Callback: ...


@overload
def on_drain(*, when: When = "before", timeout_seconds: float = 60.0) -> Callable[[Callback], Callback]: ...


def on_drain(
    callback: Callback | None = None, *, when: When = "before", timeout_seconds: float = 60.0
) -> Callback | Callable[[Callback], Callback]:
    """Call a function when the application is drained; use it as a decorator, with or without arguments.

    Parameters
    ----------
    callback
        Takes a `DrainContext`.
    when
        ``before``: nothing is read any more and everything read is committed, nothing is flushed; an exception or a timeout ends the
        drain as Failed and the queries run on, so it must be safe to call it again. ``after``: every query is flushed; an
        exception is shown in the report, the drain goes on.
    timeout_seconds
        How long it may take.

    Raises
    ------
    TypeError
        ``callback`` is not a function that takes one argument.
    ValueError
        ``when`` or ``timeout_seconds`` is not valid.
    """
    if when not in ("before", "after"):
        raise ValueError(f"on_drain: when {when!r} is neither 'before' nor 'after' the flush")
    if not isinstance(timeout_seconds, int | float) or isinstance(timeout_seconds, bool) or not timeout_seconds > 0:
        raise ValueError(f"on_drain: timeout_seconds {timeout_seconds!r} is not a positive number of seconds")

    def register(function: Callback) -> Callback:
        _check(function)
        _registered.append(_Registered(function, when, timeout_seconds))
        return function

    return register if callback is None else register(callback)


def _check(function: object) -> None:
    if not callable(function):
        raise TypeError(f"on_drain: {function!r} is not a function")
    with suppress(ValueError):  # some written in C do not tell
        signature = inspect.signature(function)
        try:
            signature.bind(None)
        except TypeError as error:
            name = getattr(function, "__qualname__", function)
            raise TypeError(f"on_drain: {name}{signature} cannot be called with one argument, the DrainContext: {error}") from None


def call_back(when: When, context: DrainContext, keep_waiting: Callable[[], None]) -> bool:
    """Call the registered functions one after the other, and return whether there are any.

    Parameters
    ----------
    when
        Which of them.
    context
        Their argument.
    keep_waiting
        Called while one runs; raises to give up.

    Raises
    ------
    CallbackError
        The first that raised or took too long; those after it are not called.
    """
    called = [item for item in _registered if item.when == when]
    for registered in called:
        _call(registered, context, keep_waiting)
    return bool(called)


def _call(registered: _Registered, context: DrainContext, keep_waiting: Callable[[], None]) -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            with as_callback():
                registered.callback(context)
        except BaseException as error:  # a callback that calls sys.exit() has failed like any other
            raised.append(error)

    # A thread, since a function that hangs cannot be ended otherwise than by not waiting for it.
    thread = threading.Thread(target=run, name="spark-drain-callback", daemon=True)
    until = monotonic() + registered.timeout_seconds
    try:
        thread.start()
    except RuntimeError as error:
        raise CallbackError(f"the callback {registered.name} has no thread that runs it: {error}") from error
    while thread.is_alive():
        if monotonic() > until:
            raise CallbackError(f"the callback {registered.name} did not return within {registered.timeout_seconds:g} s")
        keep_waiting()
        thread.join(_POLL_SECONDS)
    if raised:
        raise CallbackError(f"the callback {registered.name} raised {type(raised[0]).__name__}: {in_words(raised[0])}")
