"""A main that ends before threads of the application do."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

__all__ = ["run_main"]

_STDERR = 2


def run_main(main: Callable[[], None]) -> None:
    """Run main, and then wait for the application's threads as Python does, but before Python shuts down.

    From Python 3.12 on an interpreter that shuts down waits for them as well, and starts no thread any more, which a drain, py4j and a
    query's start need while they run.

    Raises
    ------
    BaseException
        What it has raised, of which nothing is printed twice: a `SystemExit` with words is one with the same exit code.
    """
    if sys.flags.inspect:  # what follows is a prompt
        main()
        return
    told: BaseException | None = None
    try:
        main()
    except KeyboardInterrupt:
        raise  # it ends the process by a signal
    except BaseException as error:
        if not _are_left():
            raise
        told = _tell(error)
    if _are_left():
        _join()
    if told is not None:
        _tell_no_more(told)
        raise told


def _are_left() -> bool:
    return any(not thread.daemon and thread is not threading.current_thread() for thread in threading.enumerate())


def _tell(error: BaseException) -> BaseException:
    """Print what Python prints of it, now as it would; return what is left to be raised."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error
        with suppress(Exception):
            _print_error(str(error.code))
        _print_error("\n")
        return SystemExit(1)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as ended:
        return _tell(ended)
    except BaseException as wrong:
        told = "".join(traceback.format_exception(wrong.with_traceback(_without_this(wrong)), chain=False))
        original = "".join(traceback.format_exception(error))
        _print_error(f"Error in sys.excepthook:\n{told}\nOriginal exception was:\n{original}")
    return error


def _tell_no_more(error: BaseException) -> None:
    """Keep Python from printing what is told already, whatever hook a thread has set meanwhile."""
    hook = getattr(sys, "excepthook", sys.__excepthook__)

    def tell_others(kind: type[BaseException], value: BaseException, raised_at: TracebackType | None) -> None:
        if value is not error:
            hook(kind, value, raised_at)

    sys.excepthook = tell_others


def _print_error(text: str) -> None:
    with suppress(Exception):
        if getattr(sys, "stderr", None) is not None:
            sys.stderr.write(text)
        else:
            os.write(_STDERR, text.encode(errors="backslashreplace"))


def _join() -> None:
    """Do what Python does first when it shuts down, once only."""
    shut_down = threading._shutdown  # type: ignore[attr-defined]  # also ends the threads of pools, which wait for work
    process = os.getpid()

    def shut_down_elsewhere() -> None:
        if os.getpid() != process:  # a child that was forked meanwhile has threads of its own
            shut_down()

    threading._shutdown = shut_down_elsewhere  # type: ignore[attr-defined]  # from Python 3.12 on it waits again for pools whose wait was left
    try:
        shut_down()
    except BaseException as error:  # as of a signal handler: Python waits no longer then, and goes on
        _tell_unraisable(error, None, threading)


def _tell_unraisable(error: BaseException, message: str | None, origin: object) -> None:
    """Hand an exception to the program's hook, or Python's own, as Python does where nobody can catch one."""
    hook = sys.unraisablehook
    told = _unraisable()((type(error), error, _without_this(error), message, origin))
    try:
        hook(told)
    except BaseException as wrong:
        told = _unraisable()((type(wrong), wrong, _without_this(wrong), "Exception ignored in sys.unraisablehook", hook))
        sys.__unraisablehook__(told)


def _unraisable() -> Callable[[tuple[object, ...]], Any]:
    """Return the type of what Python hands to `sys.unraisablehook`, which has no name to be imported by."""
    seen: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, seen.append
    try:
        _ = _Unraisable()
        del _
    finally:
        sys.unraisablehook = hook
    return type(seen[0])


class _Unraisable:
    def __del__(self) -> None:
        raise RuntimeError("nobody can catch this")


def _without_this(error: BaseException) -> TracebackType | None:
    """Return the traceback without the frame of this module."""
    return error.__traceback__ and error.__traceback__.tb_next
