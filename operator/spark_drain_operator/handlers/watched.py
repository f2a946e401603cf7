"""Which drains wait for what, as far as the watch stream of PipelineDrains has told."""

from __future__ import annotations

import threading
from collections import defaultdict

from spark_drain_store.channel import config_map_names

from spark_drain_operator.engine.workers import ObjectKey

__all__ = ["Watched"]


class Watched:
    """Application, or name of its ConfigMap, to unfinished drains; rebuilt from the watch stream after a restart."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._drains: dict[tuple[str, str, str], set[ObjectKey]] = defaultdict(set)
        self._subjects: dict[ObjectKey, tuple[tuple[str, str, str], ...]] = {}

    def track(self, key: ObjectKey, kind: str, application: str) -> None:
        """Remember an unfinished drain."""
        _, reports = config_map_names(application, kind)
        subjects = ((key.namespace, "application", application), (key.namespace, "configmap", reports))
        with self._lock:
            self._subjects[key] = subjects
            for subject in subjects:
                self._drains[subject].add(key)

    def forget(self, key: ObjectKey) -> None:
        """Forget a finished or deleted drain."""
        with self._lock:
            for subject in self._subjects.pop(key, ()):
                self._drains[subject].discard(key)
                if not self._drains[subject]:
                    del self._drains[subject]

    def of_application(self, namespace: str, name: str) -> tuple[ObjectKey, ...]:
        """Return the unfinished drains of an application."""
        return self._find((namespace, "application", name))

    def of_config_map(self, namespace: str, name: str) -> tuple[ObjectKey, ...]:
        """Return the unfinished drains whose agent reports into a ConfigMap."""
        return self._find((namespace, "configmap", name))

    def _find(self, subject: tuple[str, str, str]) -> tuple[ObjectKey, ...]:
        with self._lock:
            return tuple(self._drains.get(subject, ()))
