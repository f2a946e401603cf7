"""One recovery at a time per checkpoint; those of different checkpoints do not wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Recoveries"]


class Recoveries:
    """Locks by checkpoint location: of two starts on one checkpoint the second finds what the first has ended.

    A signal handler may start a query while its own thread does.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._locks: dict[str, threading.RLock] = {}

    @contextmanager
    def __call__(self, location: str) -> Iterator[None]:
        """Hold the lock of a location."""
        with self._lock:
            mine = self._locks.setdefault(location, threading.RLock())
        with mine:
            yield
