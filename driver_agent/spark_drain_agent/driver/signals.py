"""Whether the program ends because a signal told it to: Kubernetes deletes the pod, or somebody presses Ctrl-C.

A handler may raise, exit, stop the queries, or only set a flag that a loop looks at, as asyncio's does. So the application's handlers are
called through a function that takes note of the signal first; `signal.signal` and `signal.getsignal` show the application its own ones.
"""

from __future__ import annotations

import functools
import math
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from spark_drain_agent.clock import monotonic
from spark_drain_agent.signal_handlers import in_handler, raised_by_handler

__all__ = ["ends_for_a_signal", "gives_up_start", "take_note_of_signals", "told_to_end"]

_CLEANING_UP_SECONDS = 60.0
_ENDING = (signal.SIGTERM, signal.SIGINT)
_LEAVING = (*_ENDING, signal.SIGHUP, signal.SIGQUIT)
"""Where a handler of the last two ends the program, a terminal or a supervisor has told it to; others read settings anew, or log."""
_arrived: dict[int, float] = {}
_noting = False


def take_note_of_signals() -> None:
    """Note each SIGTERM and SIGINT that a handler in Python is called for, or that Python code waits for, from now on; once per process."""
    global _noting  # noqa: PLW0603  # handlers are the process', so is the fact that they are noted
    if _noting:
        return
    _noting = True
    install, get = signal.signal, signal.getsignal

    @functools.wraps(install)
    def hooked_install(signalnum: Any, handler: Any) -> Any:
        return _own(install(signalnum, _noted(signalnum, handler) if signalnum in _ENDING and callable(handler) else handler))

    @functools.wraps(get)
    def hooked_get(signalnum: Any) -> Any:
        return _own(get(signalnum))

    signal.signal, signal.getsignal = hooked_install, hooked_get
    for name in ("sigwait", "sigwaitinfo", "sigtimedwait"):
        setattr(signal, name, _noting_wait(getattr(signal, name)))
    if threading.current_thread() is threading.main_thread():  # Python lets no other thread install handlers
        for number in _ENDING:
            if callable(present := get(number)):
                install(number, _noted(number, present))


def _noting_wait(wait: Callable[..., Any]) -> Callable[..., Any]:
    """Note what a wait returns: for a signal that is waited for in this way no handler is called."""

    @functools.wraps(wait)
    def hooked(*arguments: Any) -> Any:
        found = wait(*arguments)
        number = getattr(found, "si_signo", found)
        if number in _ENDING:
            _arrived[number] = monotonic()
        return found

    return hooked


class _Noted:
    """A handler of the application, called after the signal was noted.

    Python looks `__call__` up when it calls; that is when the signal is noted. So no frame of the agent is in the traceback of what the
    handler raises.
    """

    def __init__(self, number: int, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.number, self.handler = number, handler

    @property
    def __call__(self) -> Callable[[int, FrameType | None], Any]:
        _arrived[self.number] = monotonic()
        return self.handler


def _noted(number: int, handler: Any) -> _Noted:
    return handler if isinstance(handler, _Noted) else _Noted(number, handler)


def _own(handler: Any) -> Any:
    return handler.handler if isinstance(handler, _Noted) else handler


def told_to_end(since: float) -> bool:
    """Return whether SIGTERM has come, ever, or SIGINT since a minute before a time of the monotonic clock.

    Ctrl-C may only interrupt what a notebook or a prompt is doing; one from long ago means nothing. But who was interrupted just before
    may still be cleaning up.
    """
    return signal.SIGTERM in _arrived or _arrived.get(signal.SIGINT, -math.inf) > since - _CLEANING_UP_SECONDS


def gives_up_start(begun: float) -> bool:
    """Return whether a start that began at a time of the monotonic clock, and waits, is given up.

    A program that was told to end by SIGTERM may start what is left of its queries before it looks; one that still starts some a minute
    later ignores the signal. At a prompt Ctrl-C ends what was done before, and not what is begun then.
    """
    return _arrived.get(signal.SIGTERM, -math.inf) > begun - _CLEANING_UP_SECONDS or _arrived.get(signal.SIGINT, -math.inf) >= begun


def ends_for_a_signal() -> bool:
    """Return whether the calling code is, or was left by, the application's handler of SIGTERM, SIGINT, SIGHUP or SIGQUIT."""
    if threading.current_thread() is not threading.main_thread():
        return False  # Python runs handlers in the main thread only
    error = sys.exc_info()[1]
    return isinstance(error, KeyboardInterrupt) or in_handler(sys._getframe(), _LEAVING) or raised_by_handler(error, _LEAVING)
