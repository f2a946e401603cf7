"""A thread that does the same again and again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

__all__ = ["Periodic"]

_AFTER_A_DEFECT = 30.0

_log = logging.getLogger(__name__)


class Periodic:
    """Calls a function in a thread of its own until it is stopped.

    Parameters
    ----------
    name
        Of the thread.
    work
        Returns after how many seconds it is to be called again. What it raises is a defect, and ends nothing.
    first
        Seconds until the first call.
    """

    def __init__(self, name: str, work: Callable[[], float], first: float = 0.0) -> None:
        self._work = work
        self._first = first
        self._over = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Call it no more; a call that has begun comes to its end."""
        self._over = True
        self._wake.set()

    def hasten(self) -> None:
        """Call it now, or once more after the call that has begun."""
        self._wake.set()

    def _run(self) -> None:
        wait = self._first
        while True:
            self._wake.wait(wait)
            self._wake.clear()
            if self._over:
                return
            try:
                wait = self._work()
            except Exception:
                _log.exception("%s: defect in the operator; again in %g s", self._thread.name, _AFTER_A_DEFECT)
                wait = _AFTER_A_DEFECT
