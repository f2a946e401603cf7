"""Threads that take keys from the queue and reconcile them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from spark_drain_store import ConflictError, StoreError, StoreUnavailableError
from spark_drain_store.kube_client import ApiError, ApiUnavailableError

from spark_drain_operator.engine.queue import DelayedQueue

__all__ = ["ObjectKey", "Workers", "backoff"]

_CONFLICT_SECONDS, _MAX_CONFLICT_SECONDS = 0.2, 5.0
_MAX_BACKOFF_SECONDS = 60.0
_QUIET_CONFLICTS = 5
_QUIET_FAILURES = 2
_AWAY_FAILURES = 8
"""About three minutes: it may be that only some answers do not come, and deadlines hold all the same."""
_STUCK_SECONDS = 300.0

_log = logging.getLogger(__name__)


class ObjectKey(NamedTuple):
    """Which object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the form of the log."""
        return f"{self.kind} {self.namespace}/{self.name}"


def backoff(failures: int, *, conflicts: bool = False) -> float:
    """Return the seconds to wait after that many failures in a row: 1, 2, 4, ... 60; a conflict is worth another try soon, always."""
    first, most = (_CONFLICT_SECONDS, _MAX_CONFLICT_SECONDS) if conflicts else (1.0, _MAX_BACKOFF_SECONDS)
    return float(min(most, first * 2.0 ** min(max(0, failures - 1), 32)))


def _named(error: Exception) -> str:
    """Return class and text of an error; some have none."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _away(error: BaseException | None) -> bool:
    """Return whether the API server is away, so that no status can be written either; one that answers 500 is not: a webhook may be.

    Nor is one that answers too much.
    """
    if isinstance(error, StoreUnavailableError):
        return error.__cause__ is None or _away(error.__cause__)
    return isinstance(error, ApiUnavailableError) and not error.answered


class Workers:
    """A fixed number of reconciling threads.

    Parameters
    ----------
    queue
        Where keys come from.
    reconcile
        Does one pass and returns when the next is due.
    count
        Number of threads.
    tell
        Told what keeps an object's passes from succeeding, after some failures in a row.
    """

    def __init__(
        self,
        queue: DelayedQueue[ObjectKey],
        reconcile: Callable[[ObjectKey], float | None],
        count: int,
        tell: Callable[[ObjectKey, str], None] = lambda *_: None,
    ) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._tell = tell
        self._failures: dict[ObjectKey, int] = {}
        self._busy_since: dict[str, float] = {}
        self._threads = [threading.Thread(target=self._work, name=f"worker-{number}", daemon=True) for number in range(count)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float) -> None:
        """Let each thread end its present pass, as long as that takes less than ``timeout`` seconds in all."""
        self._queue.close()
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def stuck(self) -> list[str]:
        """Return the threads that are dead, or have been in one pass for minutes: requests have timeouts, so that is a defect."""
        now = time.monotonic()
        return [
            thread.name
            for thread in self._threads
            if not thread.is_alive() or now - self._busy_since.get(thread.name, now) > _STUCK_SECONDS
        ]

    def _work(self) -> None:
        name = threading.current_thread().name
        while (key := self._queue.get()) is not None:
            self._busy_since[name] = time.monotonic()
            try:
                after = self._pass(key)
            finally:
                self._busy_since.pop(name, None)
                self._queue.done(key)
            if after is not None:
                self._queue.add(key, after)

    def _pass(self, key: ObjectKey) -> float | None:
        try:
            after = self._reconcile(key)
        except (ApiError, ApiUnavailableError, StoreError) as error:
            return self._failed(key, error)
        except Exception as error:
            _log.exception("%s: defect in the operator", key)
            return self._failed(key, error, problem=f"defect in the operator, see its log ({_named(error)})")
        self._failures.pop(key, None)
        return after

    def _failed(self, key: ObjectKey, error: Exception, problem: str = "") -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        conflict = isinstance(error, ConflictError) or (isinstance(error, ApiError) and error.status == 409)
        quiet = conflict and failures <= _QUIET_CONFLICTS  # a few conflicts are what optimistic locking is made for
        wait = backoff(failures, conflicts=conflict)
        if not quiet:
            _log.warning("%s: %s; again in %g s", key, _named(error), wait)
        if not quiet and failures > (_AWAY_FAILURES if _away(error) else _QUIET_FAILURES):
            try:
                self._tell(key, problem or _named(error))
            except (ApiError, ApiUnavailableError, StoreError) as again:
                _log.warning("%s: its status cannot be written: %s", key, again)
            except Exception:
                _log.exception("%s: defect in the operator", key)
        return wait
