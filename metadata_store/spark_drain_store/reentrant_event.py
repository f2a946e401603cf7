"""An event that a signal handler may set, or wait for, in the middle of what its own thread does with it."""

from __future__ import annotations

import threading

__all__ = ["ReentrantEvent"]


class ReentrantEvent:
    """As `threading.Event`, whose lock a thread that has it cannot take once more, as a handler called in it would."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._is_set = False

    def is_set(self) -> bool:
        """Return whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Set it, and wake all that wait."""
        with self._changed:
            self._is_set = True
            self._changed.notify_all()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is set, so many seconds at most; return whether it is."""
        with self._changed:
            return self._changed.wait_for(self.is_set, seconds)
