"""A metadata store in this process, for tests and for the agent's own demo."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from spark_drain_store.protocol import ConflictError, Snapshot, check_size

__all__ = ["MemoryStore"]


class MemoryStore:
    """`MetadataStore` held in memory; safe to share between threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entries: dict[str, str] = {}
        self._version = 0
        self._closed = False

    def _snapshot(self) -> Snapshot:
        return Snapshot(version=str(self._version) if self._version else "", entries=dict(self._entries))

    def read(self) -> Snapshot:
        """See `MetadataStore.read`."""
        with self._changed:
            return self._snapshot()

    def write(self, changes: Mapping[str, str | None], *, if_version: str | None = None) -> str:
        """See `MetadataStore.write`."""
        with self._changed:
            present = self._snapshot().version
            if if_version is not None and if_version != present:
                raise ConflictError(f"the store is at version {present!r}, not {if_version!r}")
            entries = {**self._entries, **{key: value for key, value in changes.items() if value is not None}}
            for key in [key for key, value in changes.items() if value is None]:
                entries.pop(key, None)
            check_size(entries, self._entries)
            if entries != self._entries or not self._version:
                self._entries = entries
                self._version += 1
                self._changed.notify_all()
            return str(self._version)

    def watch(self, since: str, timeout: float) -> Snapshot | None:
        """See `MetadataStore.watch`."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._snapshot().version != since, timeout)
            now = self._snapshot()
            return now if now.version != since else None

    def close(self) -> None:
        """Wake up every watcher; the contents stay readable."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
