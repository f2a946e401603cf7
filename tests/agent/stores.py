"""A metadata store that goes away and comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
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


@contextmanager
def refused(channel: Channel, word: str) -> Iterator[list[Mapping[str, str | None]]]:
    """Let a store take no report with a word in it within this block; returns those that it has refused."""
    reports, found = channel.reports, list[Mapping[str, str | None]]()
    write = reports.write

    def full(changes: Mapping[str, str | None], *, if_version: str | None = None) -> str:
        if word in str(changes):
            found.append(changes)
            raise StoreUnavailableError("no space left on device")
        return write(changes, if_version=if_version)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports, "write", full)
        yield found
