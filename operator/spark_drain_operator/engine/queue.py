"""A queue of keys that holds each key once, lets it wait, and never gives it to two workers (client-go's workqueue)."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["DelayedQueue"]

Key = TypeVar("Key", bound=Hashable)


class DelayedQueue(Generic[Key]):
    """Deduplicating delayed queue, safe between threads.

    A key that is added while a worker has it comes back when that worker is done: a change is never lost, and never handled twice at
    the same time. Of several times for one key the earliest wins.

    Parameters
    ----------
    clock
        Seconds that only grow; for tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._order = 0
        self._working: set[Key] = set()
        self._closed = False

    def add(self, key: Key, after: float = 0.0) -> None:
        """Let a key be handled in that many seconds, or earlier where it already is to be."""
        with self._changed:
            due = self._clock() + after
            if key in self._due and self._due[key] <= due:
                return
            self._due[key] = due
            if key not in self._working:
                self._push(key)

    def _push(self, key: Key) -> None:
        self._order += 1
        heapq.heappush(self._heap, (self._due[key], self._order, key))
        self._changed.notify()

    def get(self) -> Key | None:
        """Wait for a key and take it; None when the queue is closed."""
        with self._changed:
            while not self._closed:
                while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
                    heapq.heappop(self._heap)  # overtaken by an earlier time, and taken
                wait = self._heap[0][0] - self._clock() if self._heap else None
                if wait is not None and wait <= 0:
                    _, _, key = heapq.heappop(self._heap)
                    del self._due[key]
                    self._working.add(key)
                    return key
                self._changed.wait(wait)
            return None

    def done(self, key: Key) -> None:
        """Give a key back."""
        with self._changed:
            self._working.discard(key)
            if key in self._due:
                self._push(key)

    def close(self) -> None:
        """Let every worker end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __len__(self) -> int:
        """Return how many keys wait."""
        with self._changed:
            return len(self._due)
