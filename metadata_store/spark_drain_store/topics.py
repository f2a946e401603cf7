"""Topics of the metadata store: each sees only the keys of one message type (Samza's NamespaceAwareCoordinatorStreamStore)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from spark_drain_store.protocol import MetadataStore, Snapshot

__all__ = ["DRAIN", "PLACEMENT", "TopicStore", "is_of_a_topic", "of_topic"]

DRAIN: Final = "drain-v1"
"""Drain notifications and drain reports; the key behind it is the drain's id."""

PLACEMENT: Final = "placement-v1"
"""Placement requests and placement responses; the key behind it is the placement's id."""


_TOPIC = re.compile(r"[a-z]+-v[0-9]+\.")
"""What keys begin with, also those of later versions."""


def is_of_a_topic(key: str) -> bool:
    """Return whether a key is that of a message."""
    return _TOPIC.match(key) is not None


def of_topic(snapshot: Snapshot, topic: str) -> Snapshot:
    """Return what a snapshot of a whole store has of one topic, with the keys that its messages know."""
    prefix = topic + "."
    entries = {key.removeprefix(prefix): value for key, value in snapshot.entries.items() if key.startswith(prefix)}
    return Snapshot(version=snapshot.version, entries=entries)


class TopicStore:
    """`MetadataStore` over the keys ``<topic>.<key>`` of another store; versions are those of the whole store.

    Parameters
    ----------
    store
        The store underneath, closed with the view.
    topic
        The message type and version of its format, such as ``drain-v1``.
    """

    def __init__(self, store: MetadataStore, topic: str) -> None:
        self.whole = store
        """The store underneath, with the keys of all topics."""
        self._topic = topic

    def read(self) -> Snapshot:
        """See `MetadataStore.read`."""
        return of_topic(self.whole.read(), self._topic)

    def write(self, changes: Mapping[str, str | None], *, if_version: str | None = None) -> str:
        """See `MetadataStore.write`."""
        return self.whole.write({f"{self._topic}.{key}": value for key, value in changes.items()}, if_version=if_version)

    def watch(self, since: str, timeout: float) -> Snapshot | None:
        """See `MetadataStore.watch`; also wakes up for a change in another topic."""
        snapshot = self.whole.watch(since, timeout)
        return None if snapshot is None else of_topic(snapshot, self._topic)

    def close(self) -> None:
        """Close the store underneath."""
        self.whole.close()
