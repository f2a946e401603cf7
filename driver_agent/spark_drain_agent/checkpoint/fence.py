"""Make every start that does not know of the drain fail loudly, before anything else in the checkpoint changes."""

from __future__ import annotations

from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal, JournalStep
from spark_drain_agent.checkpoint.logs import END_OF_TIME_MS, Checkpoint
from spark_drain_agent.milestones import reached

__all__ = [
    "can_undo",
    "fence",
    "fence_line",
    "held",
    "is_fence",
    "kept_line",
    "never_fenced",
    "return_state",
    "set_fence",
    "unfence_overtaken",
]

_MARK = "FENCED_BY_SPARK_DRAIN"
_SCHEMAS = "/_stateSchema/"


def fence_line(drain_id: str) -> str:
    """Return the text that replaces the metadata. Spark's parser fails on its first word and shows no more than that (measured on 4.2)."""
    return (
        f"{_MARK}_{drain_id.replace('-', '_')}_START_UNDER_SPARK_DRAIN_AGENT: this checkpoint is in the middle of a drain; "
        "docs/troubleshooting.md of spark-drain has more\n"
    )


def kept_line(drain_id: str) -> str:
    """Return the text that stays in place of the metadata: no start goes on from here, not even one under the agent."""
    return (
        f"{_MARK}_{drain_id.replace('-', '_')}_WITH_CHECKPOINT_POLICY_KEEP_START_WITH_ANOTHER_CHECKPOINT_LOCATION: "
        "docs/troubleshooting.md of spark-drain has more\n"
    )


def is_fence(metadata: str | None) -> bool:
    """Return whether metadata was replaced by a fence."""
    return metadata is not None and metadata.startswith(_MARK)


def fence(files: CheckpointFiles, journal: Journal) -> None:
    """Replace ``metadata``. A *missing* file would not do: Spark before 4.2 starts without it (measured)."""
    if not is_fence(Checkpoint(files).metadata):
        set_fence(files, journal)


def set_fence(files: CheckpointFiles, journal: Journal) -> None:
    """Fence a checkpoint that was not until now."""
    Checkpoint(files).write_metadata(fence_line(journal.drain_id))
    reached("fenced")


def never_fenced(files: CheckpointFiles, journal: Journal) -> bool:
    """Return whether a drain was only prepared: nothing was changed, and any Spark may have run further batches since."""
    return journal.step is JournalStep.PREPARED and not held(files)


def unfence_overtaken(files: CheckpointFiles, journal: Journal | None) -> None:
    """Leave a checkpoint as a drain that was only prepared where the query has planned a batch of its own in the place of the flush.

    Spark 3.5 does that where the query waited for its lock, and was told to end because the store's answer to the fence was lost.
    """
    if journal is None or journal.step is not JournalStep.PREPARED or not held(files):
        return
    planned = Checkpoint(files).find_offsets(journal.flush_batch_id)
    if planned is not None and planned.watermark_ms != END_OF_TIME_MS:
        Checkpoint(files).write_metadata(journal.metadata)


def held(files: CheckpointFiles) -> bool:
    """Return whether no Spark can have run on the checkpoint since a drain replaced its metadata.

    Without any it was killed while it did so, on a filesystem that deletes what it replaces; a Spark that starts writes new metadata first.
    """
    metadata = Checkpoint(files).metadata
    return metadata is None or is_fence(metadata)


def can_undo(files: CheckpointFiles, journal: Journal) -> bool:
    """Return whether the checkpoint can be put back as it was: not once the flush batch may have written to the sink."""
    if journal.step is not JournalStep.PREPARED:
        return False
    logs = [Checkpoint(files, folder) for folder in ("", journal.work)]
    return never_fenced(files, journal) or all(log.newest_offsets != journal.flush_batch_id for log in logs)


def return_state(files: CheckpointFiles, journal: Journal) -> None:
    """Move the state back from the work copy, if it is there."""
    if files.is_folder(f"{journal.work}/state"):
        if files.renames_atomically and all(_SCHEMAS in name for name in files.below("state")):  # copies, in the way of a rename
            files.delete("state")
        files.merge(f"{journal.work}/state", "state")
