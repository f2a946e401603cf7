"""A queue of keys that holds each key once, lets it wait, and never gives it to two workers (client-go's workqueue)."""

from __future__ import annotations

import heapq
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["DelayedQueue"]

Key = TypeVar("Key", bound=Hashable)

_LONGEST_WAIT = 3600.0
"""Seconds; what is due in the year 9999 is more than a thread may wait."""

_SHARES = (0, 0, 1, 0, 0, 1, 0, 2)
"""Whose turn it is, by rank among those that wait: the most urgent mostly, but not always."""


class _Lines(Generic[Key]):
    """Keys of one rank, a line for each owner; each line in turn."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[tuple[int, Key]]] = OrderedDict()

    def push(self, owner: str, order: int, key: Key) -> None:
        self._lines.setdefault(owner, deque()).append((order, key))

    def pop(self) -> tuple[int, Key] | None:
        if not self._lines:
            return None
        owner, line = next(iter(self._lines.items()))
        found = line.popleft()
        if line:
            self._lines.move_to_end(owner)
        else:
            del self._lines[owner]
        return found


class DelayedQueue(Generic[Key]):
    """Deduplicating delayed queue, safe between threads.

    A key that is added while a worker has it comes back when that worker is done: a change is never lost, and never handled twice at
    the same time. Of several times for one key the earliest wins. Of the keys whose time has come, those of a lower rank mostly go first,
    and of one rank each owner's in turn: who adds thousands makes nobody else wait for them.

    Parameters
    ----------
    clock
        Seconds that only grow; for tests.
    rank
        How urgent a key is; 0 is most urgent. Asked when the key's time comes, and again when it is added once more.
    owner
        Among whom the turns are shared.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        rank: Callable[[Key], int] = lambda _: 0,
        owner: Callable[[Key], str] = lambda _: "",
    ) -> None:
        self._clock = clock
        self._rank = rank
        self._owner = owner
        self._changed = threading.Condition()
        self._due: dict[Key, float] = {}
        self._waiting: list[tuple[float, int, Key]] = []
        self._turn: dict[Key, tuple[int, int]] = {}
        self._ready: dict[int, _Lines[Key]] = {}
        self._taken = 0
        self._order = 0
        self._working: set[Key] = set()
        self._closed = False

    def add(self, key: Key, after: float = 0.0) -> None:
        """Let a key be handled in that many seconds, or earlier where it already is to be."""
        with self._changed:
            due = self._clock() + after
            if key in self._turn:
                if self._rank(key) < self._turn[key][0]:
                    self._push_ready(key)
            elif key not in self._due or due < self._due[key]:
                self._due[key] = due
                if key not in self._working:
                    self._push_waiting(key)

    def _push_waiting(self, key: Key) -> None:
        self._order += 1
        heapq.heappush(self._waiting, (self._due[key], self._order, key))
        self._changed.notify()

    def _push_ready(self, key: Key) -> None:
        self._order += 1
        rank = self._rank(key)
        self._turn[key] = (rank, self._order)
        self._ready.setdefault(rank, _Lines()).push(self._owner(key), self._order, key)
        self._changed.notify()

    def get(self) -> Key | None:
        """Wait for a key and take it; None when the queue is closed."""
        with self._changed:
            while not self._closed:
                self._admit()
                key = self._take()
                if key is not None:
                    self._working.add(key)
                    return key
                self._changed.wait(min(self._waiting[0][0] - self._clock(), _LONGEST_WAIT) if self._waiting else None)
            return None

    def _take(self) -> Key | None:
        while self._turn:
            ranks = sorted(self._ready)
            rank = ranks[min(_SHARES[self._taken % len(_SHARES)], len(ranks) - 1)]
            found = self._ready[rank].pop()
            if found is None:
                del self._ready[rank]
                continue
            order, key = found
            if self._turn.get(key) == (rank, order):  # else it was overtaken by a more urgent turn of its own
                del self._turn[key]
                self._taken += 1
                return key
        self._ready.clear()
        return None

    def _admit(self) -> None:
        """Let those whose time has come take their turn."""
        while self._waiting and self._waiting[0][0] <= self._clock():
            due, _, key = heapq.heappop(self._waiting)
            if self._due.get(key) == due and key not in self._working:  # else overtaken by an earlier time, and taken
                del self._due[key]
                self._push_ready(key)

    def done(self, key: Key) -> None:
        """Give a key back."""
        with self._changed:
            self._working.discard(key)
            if key in self._due:
                self._push_waiting(key)

    def close(self) -> None:
        """Let every worker end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __len__(self) -> int:
        """Return how many keys wait."""
        with self._changed:
            return len(self._due) + len(self._turn)
