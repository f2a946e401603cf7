"""Waiting for what comes true by itself."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

Found = TypeVar("Found")


class Alive(Protocol):
    """A process without which there is nothing to wait for."""

    @property
    def running(self) -> bool: ...

    def tail(self) -> str: ...


def eventually(
    look: Callable[[], Found | None], what: str = "", seconds: float = 60.0, alive: Alive | None = None, *, every: float = 0.05
) -> Found:
    """Return the first truthy answer; fails with the last one when time is up, or with its log when a process ends before.

    Parameters
    ----------
    look
        Asked again and again.
    what
        Is waited for.
    seconds
        Until it fails.
    alive
        The process that is to bring it about.
    every
        Seconds between two looks.
    """
    give_up = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert alive is None or alive.running, f"the process ended while waiting for {what}:\n{alive.tail() if alive else ''}"
        named = what or getattr(look, "__name__", "")
        assert time.monotonic() < give_up, f"not within {seconds:g} s: {named} (last answer {found!r})\n{alive.tail() if alive else ''}"
        time.sleep(every)


@contextmanager
def meanwhile(act: Callable[[], None], every: float) -> Iterator[None]:
    """Do something again and again, so many seconds apart, while the block lasts."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(every):
            act()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
