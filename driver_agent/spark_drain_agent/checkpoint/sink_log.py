"""The log of a file sink that a next version begins with: its first batch must be the one after the last that the log knows.

Spark writes an entry per batch and merges them in every n-th, for which it reads all since the merge before. In a log that begins with
batch 5 it fails there, and so does every reader before (``CompactibleFileStreamLog``).
"""

from __future__ import annotations

from collections.abc import Iterable

from spark_drain_agent.checkpoint.files import CheckpointFiles

__all__ = ["SinkLogError", "logged_batches", "prepare_sink_log"]

_LOG = "_spark_metadata"
_MERGED = ".compact"
_EMPTY = "v1"


class SinkLogError(Exception):
    """The folder's log ends where the next batch would be lost, or leave a gap; nothing was touched."""


def prepare_sink_log(folder: CheckpointFiles, first_batch_id: int, merged_every: int, *, planned: bool) -> None:
    """Write the entries of batches without files that come before the first one, where the folder has no log yet.

    Parameters
    ----------
    folder
        What the file sink writes to.
    first_batch_id
        Of the version that starts.
    merged_every
        How many entries Spark merges into one.
    planned
        Whether an earlier start has planned the first batch, so that its entry may be there.

    Raises
    ------
    SinkLogError
        The log is of other batches.
    """
    names = set(folder.names(_LOG))
    wanted = _entries(first_batch_id, merged_every)
    if names <= set(wanted):  # all of them, or some where a start was interrupted
        for name in wanted:
            if name not in names:
                folder.write(f"{_LOG}/{name}", _EMPTY)
        return
    newest = max(_batches(names), default=-1)
    if newest > first_batch_id or (newest == first_batch_id and not planned):
        raise SinkLogError(
            f"the log of the output folder {folder.uri('')} has batch {newest} already, so the sink would pass over batches "
            f"{first_batch_id} to {newest}: write to another folder"
        )
    if newest < first_batch_id - 1:
        raise SinkLogError(
            f"the log of the output folder {folder.uri('')} ends with batch {newest}, and could not be read with batch {first_batch_id} "
            "next: write to another folder"
        )


def logged_batches(folder: CheckpointFiles) -> set[int]:
    """Return the ids of the entries that the log of a folder has."""
    return _batches(folder.names(_LOG))


def _batches(names: Iterable[str]) -> set[int]:
    return {int(number) for name in names if (number := name.removesuffix(_MERGED)).isdigit()}


def _entries(first_batch_id: int, merged_every: int) -> list[str]:
    merged = first_batch_id // merged_every * merged_every - 1
    return ([f"{merged}{_MERGED}"] if merged >= 0 else []) + [str(number) for number in range(merged + 1, first_batch_id)]
