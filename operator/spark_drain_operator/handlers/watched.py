"""Which drains and placements wait for what, and how urgently, as far as the watch streams have told."""

from __future__ import annotations

import threading
from collections import defaultdict

from spark_drain_store.channel import config_map_names

from spark_drain_operator.engine.workers import ObjectKey

__all__ = ["Watched"]

_STANDING_STILL, _WAITING, _FINISHED = range(3)


class Watched:
    """Application, or name of one of its ConfigMaps, to unfinished objects; rebuilt from the watch stream after a restart."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._drains: dict[tuple[str, str, str], set[ObjectKey]] = defaultdict(set)
        self._subjects: dict[ObjectKey, tuple[tuple[str, str, str], ...]] = {}
        self._standing_still: set[ObjectKey] = set()
        self._stops: set[ObjectKey] = set()

    def track(self, key: ObjectKey, kind: str, application: str, *, stops: bool = True) -> None:
        """Remember an unfinished object; ``stops``: whether its application stands still while it is carried out."""
        config_maps = ((key.namespace, "configmap", name) for name in config_map_names(application, kind))
        subjects = ((key.namespace, "application", application), *config_maps)
        with self._lock:
            self._subjects[key] = subjects
            if stops:
                self._stops.add(key)
            for subject in subjects:
                self._drains[subject].add(key)

    def hasten(self, key: ObjectKey) -> None:
        """Remember that an application stands still, or is about to, until its drain has ended: such drains go first; placements do not."""
        with self._lock:
            if key in self._stops:
                self._standing_still.add(key)

    def forget(self, key: ObjectKey) -> None:
        """Forget a finished or deleted object."""
        with self._lock:
            self._standing_still.discard(key)
            self._stops.discard(key)
            for subject in self._subjects.pop(key, ()):
                self._drains[subject].discard(key)
                if not self._drains[subject]:
                    del self._drains[subject]

    def rank(self, key: ObjectKey) -> int:
        """Return how urgent an object is: 0 while its application stands still, 1 before that, 2 after the end."""
        with self._lock:
            if key in self._standing_still:
                return _STANDING_STILL
            return _WAITING if key in self._subjects else _FINISHED

    def of_application(self, namespace: str, name: str) -> tuple[ObjectKey, ...]:
        """Return the unfinished objects of an application."""
        return self._find((namespace, "application", name))

    def of_config_map(self, namespace: str, name: str) -> tuple[ObjectKey, ...]:
        """Return the unfinished drains whose requests or reports are in a ConfigMap."""
        return self._find((namespace, "configmap", name))

    def _find(self, subject: tuple[str, str, str]) -> tuple[ObjectKey, ...]:
        with self._lock:
            return tuple(self._drains.get(subject, ()))
