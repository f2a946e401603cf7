"""How a start of the application's waits: until a signal tells the program to end, at most."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spark_drain_agent.clock import monotonic

__all__ = ["StartGivenUpError", "given_up_when", "pause", "raise_if_given_up"]

_LOOK_SECONDS = 0.5
_thread = threading.local()


class StartGivenUpError(BaseException):
    """The program was told to end while a start waited; nobody but the start itself is to handle it."""


@contextmanager
def given_up_when(told: Callable[[], bool]) -> Iterator[None]:
    """Let a start of this thread within this block be given up as soon as something is so, here or in a block around it."""
    around = getattr(_thread, "told", None)
    _thread.told = told if around is None else lambda: around() or told()
    try:
        yield
    finally:
        _thread.told = around


def raise_if_given_up() -> None:
    """Do nothing, unless the calling thread is in a start that is given up.

    Raises
    ------
    StartGivenUpError
        It is.
    """
    told = getattr(_thread, "told", None)
    if told is not None and told():
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
        raise_if_given_up()
