"""Threads that take keys from the queue and reconcile them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from spark_drain_store import ConflictError, StoreError
from spark_drain_store.kube_client import ApiError, ApiUnavailableError

from spark_drain_operator.engine.queue import DelayedQueue

__all__ = ["ObjectKey", "Workers", "backoff"]

_CONFLICT_SECONDS = 0.2
_MAX_BACKOFF_SECONDS = 60.0
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


def backoff(failures: int) -> float:
    """Return the seconds to wait after that many failures in a row: 1, 2, 4, ... 60."""
    return float(min(_MAX_BACKOFF_SECONDS, 2.0 ** max(0, failures - 1)))


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
    """

    def __init__(self, queue: DelayedQueue[ObjectKey], reconcile: Callable[[ObjectKey], float | None], count: int) -> None:
        self._queue = queue
        self._reconcile = reconcile
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
        except ConflictError:
            return _CONFLICT_SECONDS
        except (ApiError, ApiUnavailableError, StoreError) as error:
            if isinstance(error, ApiError) and error.status in (409, 422):  # 422: the version test of a JSON patch
                return _CONFLICT_SECONDS if error.status == 409 else self._failed(key, error)
            return self._failed(key, error)
        except Exception:
            _log.exception("%s: defect in the operator", key)
            return self._failed(key, None)
        self._failures.pop(key, None)
        return after

    def _failed(self, key: ObjectKey, error: Exception | None) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = backoff(failures)
        if error is not None:
            _log.warning("%s: %s; again in %g s", key, error, wait)
        return wait
