"""Which drains an application has, as far as the watch stream of PipelineDrains has told."""

from __future__ import annotations

import threading
from collections import defaultdict

from spark_drain_operator.workers import DrainKey

__all__ = ["Watched"]


class Watched:
    """Application (namespace, name) to its unfinished drains; rebuilt from the watch stream after a restart."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._drains: dict[tuple[str, str], set[DrainKey]] = defaultdict(set)
        self._application: dict[DrainKey, tuple[str, str]] = {}

    def track(self, key: DrainKey, application: str) -> None:
        """Remember an unfinished drain."""
        with self._lock:
            self._application[key] = (key.namespace, application)
            self._drains[(key.namespace, application)].add(key)

    def forget(self, key: DrainKey) -> None:
        """Forget a finished or deleted drain."""
        with self._lock:
            application = self._application.pop(key, None)
            if application is not None:
                self._drains[application].discard(key)
                if not self._drains[application]:
                    del self._drains[application]

    def of(self, namespace: str, application: str) -> tuple[DrainKey, ...]:
        """Return the unfinished drains of an application."""
        with self._lock:
            return tuple(self._drains.get((namespace, application), ()))
