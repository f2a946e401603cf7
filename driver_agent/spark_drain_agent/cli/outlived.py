"""A main that ends before threads of the application do."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable

__all__ = ["run_main"]


def run_main(main: Callable[[], None]) -> None:
    """Run main, and then wait for the application's threads as Python does, but before Python shuts down.

    From Python 3.12 on an interpreter that shuts down waits for them as well, and starts no thread any more, which a drain, py4j and a
    query's start need while they run.

    Raises
    ------
    BaseException
        What it has raised, or a `SystemExit` with the same exit code where its message or traceback is printed already.
    """
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
        raise told


def _are_left() -> bool:
    return any(not thread.daemon and thread is not threading.current_thread() for thread in threading.enumerate())


def _tell(error: BaseException) -> SystemExit:
    """Print what Python prints of it, now as it would."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error
        print(error.code, file=sys.stderr)
    else:
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        sys.excepthook(type(error), error, error.__traceback__)
    return SystemExit(1)


def _join() -> None:
    """Do what Python does first when it shuts down; it does that once only."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # also ends the threads of pools, which wait for work
    except BaseException as error:  # as of a signal handler: Python waits no longer then, and goes on
        print(f"Exception ignored in: {threading!r}", file=sys.stderr)
        traceback.print_exception(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next))
