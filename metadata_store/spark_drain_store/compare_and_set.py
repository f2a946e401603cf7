"""The one way in which what was read decides what is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spark_drain_store.protocol import ConflictError, MetadataStore, Snapshot

__all__ = ["compare_and_set"]

_ATTEMPTS = 10


def compare_and_set(store: MetadataStore, change: Callable[[Snapshot], Mapping[str, str | None]]) -> None:
    """Read a store, decide, and write what was decided under the version that was read; again where somebody else wrote first.

    Parameters
    ----------
    store
        What is read and written.
    change
        Decides on the changes (see `MetadataStore.write`) from what was read; without any, nothing is written. Called once for each
        attempt; what it raises ends them.

    Raises
    ------
    ConflictError
        Others write all the time.
    """
    for _ in range(_ATTEMPTS):
        snapshot = store.read()
        changes = change(snapshot)
        if not changes:
            return
        try:
            store.write(changes, if_version=snapshot.version)
        except ConflictError:
            continue
        return
    raise ConflictError("the metadata store is written by others all the time: try again")
