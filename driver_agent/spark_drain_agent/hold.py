"""What the user's threads may do during a drain: go on, wait, or stay held until the notification is gone."""

from __future__ import annotations

import threading
import time
from enum import Enum

__all__ = ["Gate", "Phase"]


class Phase(Enum):
    """State of the gate."""

    OPEN = "open"
    DECIDING = "deciding"
    """Sources are being frozen and checked: new queries wait for the outcome."""
    HELD = "held"
    """Beyond the point of no return: no query starts, and the driver does not end, so that nothing runs between drained and suspended."""


class Gate:
    """A phase that threads can wait for, and how busy the user's main thread was."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._phase = Phase.OPEN
        self._waiting = 0
        self._last_start = time.monotonic()

    @property
    def phase(self) -> Phase:
        """The present phase."""
        with self._changed:
            return self._phase

    def turn(self, phase: Phase) -> None:
        """Change the phase and wake every waiting thread."""
        with self._changed:
            self._phase = phase
            self._changed.notify_all()

    def wait_while(self, phase: Phase, timeout: float | None = None) -> bool:
        """Wait while the gate is in a phase; False when ``timeout`` seconds (None: no limit) passed before it changed."""
        with self._changed:
            self._waiting += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: self._phase is not phase, timeout)
            finally:
                self._waiting -= 1

    def query_started(self) -> None:
        """Note that user code has just started a query."""
        with self._changed:
            self._last_start = time.monotonic()

    def user_waits(self) -> UserWait:
        """Return a context manager for the time in which user code waits for its queries, and so will start no other."""
        return UserWait(self)

    def in_place(self, quiet_seconds: float) -> bool:
        """Return whether the application has started what it is going to start: it waits, or was quiet for a while."""
        with self._changed:
            return self._waiting > 0 or time.monotonic() - self._last_start >= quiet_seconds

    @property
    def user_is_waiting(self) -> bool:
        """Whether a thread of the user waits for queries, or the program has ended."""
        with self._changed:
            return self._waiting > 0

    def _count(self, change: int) -> None:
        with self._changed:
            self._waiting += change
            self._changed.notify_all()


class UserWait:
    """See `Gate.user_waits`."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __enter__(self) -> None:
        self._gate._count(1)

    def __exit__(self, *_: object) -> None:
        self._gate._count(-1)
