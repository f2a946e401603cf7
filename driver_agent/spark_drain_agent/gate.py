"""What the user's threads may do during a drain: start queries, wait, or stay held until the notification is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from spark_drain_agent.clock import monotonic

__all__ = ["Gate", "Phase"]

Concerns = Callable[[Any], bool]


class Phase(Enum):
    """State of the gate."""

    OPEN = "open"
    DECIDING = "deciding"
    """Sources are being frozen and checked. Nothing has to wait for that: queries may still start and stop."""
    HELD = "held"
    """Beyond the point of no return: no query that the drain concerns starts, and none of them seems to end."""


def _everything(_: object) -> bool:
    return True


class Gate:
    """A phase that threads can wait for, the starts in flight, and how busy the user's main thread was.

    No lock is held while code of the user or of Spark runs.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._phase = Phase.OPEN
        self._concerns: Concerns = _everything
        self._turns, self._times_held = 0, 0
        self._begun = monotonic()
        self._leaving = False
        self._starts: list[object] = []
        self._waiting = 0
        self._all_started = 0
        self._first_start: float | None = None
        self._last_start = monotonic()

    @property
    def phase(self) -> Phase:
        """The present phase."""
        with self._changed:
            return self._phase

    @property
    def turns(self) -> int:
        """How often the phase has changed: what was seen between two equal numbers was seen in one phase."""
        with self._changed:
            return self._turns

    @property
    def times_held(self) -> int:
        """How often a drain has come beyond its point of no return: what it has held then, no later one holds."""
        with self._changed:
            return self._times_held

    def turn(self, phase: Phase, concerns: Concerns = _everything) -> None:
        """Change the phase and wake every waiting thread.

        Parameters
        ----------
        phase
            The new phase.
        concerns
            Tells for what is started whether the drain concerns it; must not block.
        """
        with self._changed:
            self._turn(phase, concerns)

    def _turn(self, phase: Phase, concerns: Concerns) -> None:
        self._times_held += phase is Phase.HELD and self._phase is not Phase.HELD
        self._phase, self._concerns = phase, concerns
        self._turns += 1
        self._changed.notify_all()

    def hold(self, unchanged: Callable[[], bool]) -> bool:
        """Turn from deciding to held, unless something that the drain concerns is being started or ``unchanged()`` is false."""
        with self._changed:
            if self._leaving or any(self._concerns(item) for item in self._starts) or not unchanged():
                return False
            self._turn(Phase.HELD, self._concerns)
            return True

    def leave(self) -> bool:
        """Take note that Spark is stopped or the program ends: no drain holds it from now on; False where one does already."""
        with self._changed:
            self._leaving = self._phase is not Phase.HELD
            return self._leaving

    @property
    def leaving(self) -> bool:
        """Whether Spark is being stopped or the program ends, and no drain can hold that any more."""
        with self._changed:
            return self._leaving

    def begin(self) -> None:
        """Take note that a drain begins to be carried out now."""
        with self._changed:
            self._begun = monotonic()

    @property
    def begun(self) -> float:
        """When a drain last began to be carried out, by the monotonic clock."""
        with self._changed:
            return self._begun

    def holds(self, item: object) -> bool:
        """Return whether a drain keeps this from starting."""
        with self._changed:
            return self._phase is Phase.HELD and self._concerns(item)

    def wait_while(self, phase: Phase, timeout: float | None = None) -> bool:
        """Wait while the gate is in a phase; False when ``timeout`` seconds (None: no limit) passed before it changed."""
        with self.user_waits(), self._changed:
            return self._changed.wait_for(lambda: self._phase is not phase, timeout)

    def wait_for_decision(self, item: object, timeout: float) -> None:
        """Wait until a drain that concerns what is to be started is decided, at most so many seconds."""
        with self._changed:
            concerned = self._phase is Phase.DECIDING and self._concerns(item)
        if concerned:
            self.wait_while(Phase.DECIDING, timeout)

    @contextmanager
    def starting(self, item: object, *, again: bool = False) -> Iterator[bool]:
        """Count a start in flight for the time of this block; False, and not counted, where a drain keeps it from starting.

        An application that starts ``again`` what had ended has not been starting its queries all the while.
        """
        with self._changed:
            free = not (self._phase is Phase.HELD and self._concerns(item))
            if free:
                self._starts.append(item)
                self._first_start = self._first_start or monotonic()
        try:
            yield free
        finally:
            if free:
                with self._changed:
                    self._starts = [other for other in self._starts if other is not item]
                    self._last_start = self._last_start if again else monotonic()
                    self._changed.notify_all()

    def starts_in_flight(self) -> list[Any]:
        """Return what is being started now."""
        with self._changed:
            return list(self._starts)

    def user_waits(self, *, for_any: bool = False) -> UserWait:
        """Return a context manager for the time in which user code waits for its queries, and so will start no other.

        A thread that waits ``for_any`` query to end may leave it to others to start them.
        """
        return UserWait(self, says_all=not for_any and threading.current_thread() is threading.main_thread())

    def in_place(self, quiet_seconds: float) -> bool:
        """Return whether the application has started what it is going to start: it waits, or was quiet for a while.

        One thread of a pool waits for its query before another one has started its own: so for a while it counts only that the main thread
        waits for a query.
        """
        with self._changed:
            if self._all_started > 0:
                return True
            if self._waiting > 0 and self._first_start is not None and monotonic() - self._first_start >= quiet_seconds:
                return True
            return self._is_quiet(quiet_seconds)

    @property
    def user_is_waiting(self) -> bool:
        """Whether a thread of the user waits for queries, or the program has ended."""
        with self._changed:
            return self._waiting > 0

    def waits_in_vain(self, quiet_seconds: float) -> bool:
        """Return whether a thread of the user waits for queries, though for a while none was started."""
        with self._changed:
            return self._waiting > 0 and self._is_quiet(quiet_seconds)

    def _is_quiet(self, seconds: float) -> bool:
        return not self._starts and monotonic() - self._last_start >= seconds

    def _count(self, change: int, *, says_all: bool) -> None:
        with self._changed:
            self._waiting += change
            self._all_started += change if says_all else 0
            self._changed.notify_all()


class UserWait:
    """See `Gate.user_waits`."""

    def __init__(self, gate: Gate, *, says_all: bool) -> None:
        self._gate, self._says_all = gate, says_all

    def __enter__(self) -> None:
        self._gate._count(1, says_all=self._says_all)

    def __exit__(self, *_: object) -> None:
        self._gate._count(-1, says_all=self._says_all)
