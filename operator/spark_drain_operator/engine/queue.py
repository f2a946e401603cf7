"""A queue of keys that holds each key once, lets it wait, and never gives it to two workers (client-go's workqueue)."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

__all__ = ["DelayedQueue"]

Key = TypeVar("Key", bound=Hashable)


class _Turn(NamedTuple):
    rank: int
    round: int
    order: int


class DelayedQueue(Generic[Key]):
    """Deduplicating delayed queue, safe between threads.

    A key that is added while a worker has it comes back when that worker is done: a change is never lost, and never handled twice at
    the same time. Of several times for one key the earliest wins. Of the keys whose time has come, those of the lowest rank go first,
    and of these each owner's in turn: who adds thousands makes nobody else wait for more than one of them (start-time fair queueing).

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
        self._turn: dict[Key, _Turn] = {}
        self._ready: list[tuple[_Turn, Key]] = []
        self._round: dict[int, int] = {}
        self._last_round: dict[tuple[int, str], int] = {}
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
        rank, owner = self._rank(key), self._owner(key)
        turn = max(self._round.get(rank, 0), self._last_round.get((rank, owner), -1) + 1)
        self._last_round[rank, owner] = turn
        self._turn[key] = _Turn(rank, turn, self._order)
        heapq.heappush(self._ready, (self._turn[key], key))
        self._changed.notify()

    def get(self) -> Key | None:
        """Wait for a key and take it; None when the queue is closed."""
        with self._changed:
            while not self._closed:
                self._admit()
                while self._ready:
                    turn, key = heapq.heappop(self._ready)
                    if self._turn.get(key) == turn:  # else it was overtaken by a more urgent turn of its own
                        del self._turn[key]
                        self._working.add(key)
                        self._round[turn.rank] = turn.round
                        return key
                self._round.clear()
                self._last_round.clear()
                self._changed.wait(self._waiting[0][0] - self._clock() if self._waiting else None)
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
