"""The metadata store as both sides see it: a versioned map of strings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

__all__ = [
    "MAX_TOTAL_BYTES",
    "ConflictError",
    "EntryTooLargeError",
    "MetadataStore",
    "Snapshot",
    "StoreError",
    "StoreUnavailableError",
    "check_size",
]

MAX_TOTAL_BYTES = 1024 * 1024
"""Keys and values of one store together, in UTF-8 bytes; the limit of a ConfigMap, kept by every implementation."""


class StoreError(Exception):
    """A metadata store could not do what it was asked."""


class ConflictError(StoreError):
    """Somebody else wrote the store since the version that the caller had read."""


class StoreUnavailableError(StoreError):
    """The store cannot be reached now; the same call may succeed later."""


class EntryTooLargeError(StoreError):
    """The store would grow beyond `MAX_TOTAL_BYTES`; nothing was written."""


@dataclass(frozen=True)
class Snapshot:
    """The whole store at one version.

    Parameters
    ----------
    version
        Opaque; equal versions mean equal contents. The empty string is the version of a store that does not exist yet.
    entries
        Key to value, both text.
    """

    version: str
    entries: Mapping[str, str]


class MetadataStore(Protocol):
    """A small map of strings with compare-and-set on the whole map and a watch.

    One version for the whole map, not one per key, because "one active drain per application" is a condition over all keys: the
    writer reads, decides and writes under the version it read, and the first write wins.
    """

    def read(self) -> Snapshot:
        """Return the present contents; an absent store reads as empty.

        Raises
        ------
        StoreUnavailableError
            The store cannot be reached.
        """
        ...

    def write(self, changes: Mapping[str, str | None], *, if_version: str | None = None) -> str:
        """Set (or, with None, remove) several keys at once, and return the new version.

        Parameters
        ----------
        changes
            Key to new value, or to None to remove the key.
        if_version
            Write only when the store still has this version; None writes whatever the version is.

        Raises
        ------
        ConflictError
            The store has another version than ``if_version``.
        EntryTooLargeError
            The contents would exceed `MAX_TOTAL_BYTES`.
        StoreUnavailableError
            The store cannot be reached.
        """
        ...

    def watch(self, since: str, timeout: float) -> Snapshot | None:
        """Wait until the store has another version than ``since``; None after ``timeout`` seconds without a change.

        Raises
        ------
        StoreUnavailableError
            The store cannot be reached.
        """
        ...

    def close(self) -> None:
        """Release connections; a `watch` under way in another thread returns soon after."""
        ...


def check_size(entries: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Raise `EntryTooLargeError` when the entries do not fit into one store, unless it holds more than they need now."""
    total = _size(entries)
    if total > MAX_TOTAL_BYTES and total >= _size(before):
        largest = max(entries, key=lambda key: len(entries[key]))
        raise EntryTooLargeError(
            f"the metadata store would hold {total} bytes, more than its limit of {MAX_TOTAL_BYTES}; "
            f"the largest entry is {largest!r}: remove finished drains with `drain cleanup`, or placements with `placement delete`"
        )


def _size(entries: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in entries.items())
