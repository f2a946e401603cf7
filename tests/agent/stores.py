"""A metadata store that goes away and comes back."""

from __future__ import annotations

from collections.abc import Mapping

from spark_drain_store import Channel, Snapshot, StoreUnavailableError
from spark_drain_store.memory import MemoryStore


class FickleStore(MemoryStore):
    """The store in memory, which cannot be reached while `away`."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.refused = 0
        self.written: list[Mapping[str, str | None]] = []

    def _check(self) -> None:
        if self.away:
            self.refused += 1
            raise StoreUnavailableError("away")

    def read(self) -> Snapshot:
        self._check()
        return super().read()

    def write(self, changes: Mapping[str, str | None], *, if_version: str | None = None) -> str:
        self._check()
        self.written.append(changes)
        return super().write(changes, if_version=if_version)


def fickle_channel() -> tuple[Channel, FickleStore, FickleStore]:
    """Return a channel and its two stores, requests first."""
    requests, reports = FickleStore(), FickleStore()
    return Channel.over(requests, reports), requests, reports
