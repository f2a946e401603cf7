"""How a start of the application's waits: until a signal tells the program to end, at most."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spark_drain_agent.clock import monotonic

__all__ = ["StartGivenUpError", "begin_launch", "given_up_when", "pause"]

_LOOK_SECONDS = 0.5
_thread = threading.local()


class StartGivenUpError(BaseException):
    """The program was told to end while a start waited; nobody but the start itself is to handle it."""


@contextmanager
def given_up_when(told: Callable[[], bool], *, launches: Callable[[], bool] | None = None) -> Iterator[None]:
    """Let the pauses of this thread within this block end as soon as something is so, here or in a block around it.

    Parameters
    ----------
    told
        Returns whether it is so.
    launches
        Called at the last moment before Spark is asked to start the query; returns False where it is not to be.
    """
    around, before = getattr(_thread, "told", None), getattr(_thread, "launches", None)
    _thread.told = told if around is None else lambda: around() or told()
    _thread.launches = launches or before
    try:
        yield
    finally:
        _thread.told, _thread.launches = around, before


def begin_launch() -> None:
    """Go on to the launch of a start that may be given up until then.

    Raises
    ------
    StartGivenUpError
        The calling thread is in a start that is given up.
    """
    launches = getattr(_thread, "launches", None)
    if launches is not None and not launches():
        raise StartGivenUpError


def pause(seconds: float) -> None:
    """Wait so long.

    Raises
    ------
    StartGivenUpError
        The calling thread is in a start that is given up.
    """
    told, until = getattr(_thread, "told", None), monotonic() + seconds
    while True:
        left = until - monotonic()
        if left <= 0:
            return
        time.sleep(left if told is None else min(left, _LOOK_SECONDS))  # also before the first look: a loop may start it again at once
        if told is not None and told():
            raise StartGivenUpError
