"""Make every start that does not know of the drain fail loudly, before anything else in the checkpoint changes."""

from __future__ import annotations

from spark_drain_agent.checkpoint import Checkpoint
from spark_drain_agent.filesystem import CheckpointFiles
from spark_drain_agent.journal import Journal, JournalStep, remove_journal, write_journal
from spark_drain_agent.trace import reached

__all__ = ["fence", "fence_line", "is_fence", "undo"]

_MARK = "FENCED_BY_SPARK_DRAIN"


def fence_line(uuid: str) -> str:
    """Return the text that replaces the metadata. Spark's parser fails on its first word and shows no more than that (measured on 4.2)."""
    return (
        f"{_MARK}_{uuid.replace('-', '_')}_START_UNDER_SPARK_DRAIN_AGENT: this checkpoint is in the middle of a drain, or was drained with "
        "checkpoint policy Keep; docs/troubleshooting.md of spark-drain has more\n"
    )


def is_fence(metadata: str | None) -> bool:
    """Return whether metadata was replaced by a fence."""
    return metadata is not None and metadata.startswith(_MARK)


def fence(files: CheckpointFiles, journal: Journal) -> Journal:
    """Replace ``metadata``. A *missing* file would not do: Spark before 4.2 starts without it (measured)."""
    Checkpoint(files).write_metadata(fence_line(journal.uuid))
    reached("fenced")
    return write_journal(files, journal.at(JournalStep.FENCED))


def undo(files: CheckpointFiles, journal: Journal) -> None:
    """Put the checkpoint back as it was; only right while the flush batch has not been logged."""
    work = Checkpoint(files, journal.work)
    live = Checkpoint(files)
    if files.exists(work.name("state")):
        files.delete(live.name("state"))
        files.move(work.name("state"), live.name("state"))
    live.write_metadata(journal.metadata)
    files.delete(journal.work)
    remove_journal(files)
