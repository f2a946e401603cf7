"""Leave the checkpoint as the next version needs it, and lift the fence, last."""

from __future__ import annotations

from spark_drain_agent.checkpoint.archive import note_archive
from spark_drain_agent.checkpoint.fence import kept_line, return_state
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import DRAIN_FOLDER, EMPTY_STORE, Journal, JournalStep, write_journal
from spark_drain_agent.checkpoint.logs import Checkpoint, OffsetEntry
from spark_drain_agent.checkpoint.state_schemas import name_schemas_in_place
from spark_drain_agent.milestones import reached

__all__ = ["lift_fence", "prune_archives", "seed"]

_FREE_CONFS = (
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion",
)
"""Confs that Spark pins because of existing state, and takes from the session where they are missing.

For every other one it takes the value of its oldest releases then, so those stay until the next version's agent writes its session's.
"""


def seed(files: CheckpointFiles, journal: Journal, last: OffsetEntry | None = None) -> Journal:
    """Rewrite the logs for the next start; safe to repeat, and safe to stop anywhere because the fence still stands.

    Parameters
    ----------
    files, journal
        The checkpoint and its journal.
    last
        The entry of the newest batch before the drain, where it is known; else it is read from the archive.
    """
    if journal.checkpoint_policy == "Reseed":
        journal = note_archive(files, journal)
        _reseed(files, journal, last or Checkpoint(files, journal.work).offsets(journal.batch_id))
    elif journal.checkpoint_policy == "Continue":
        _continue(files, journal)
    reached("seeded")
    return write_journal(files, journal.at(JournalStep.SEEDED))


def _reseed(files: CheckpointFiles, journal: Journal, entry: OffsetEntry) -> None:
    """Write the logs of a generation without state, which reads on where the newest batch did, and remove the state.

    The two batch ids before the first one are seeded, -2 and -1 where ids start again: an entry 0 would be executed again from the very
    beginning, and Spark asks for the entry before the newest, hence two. A first batch with another id than 0 looks for state of its id,
    which `empty_state` makes at the first start; a start without it fails.
    """
    live, first = Checkpoint(files), journal.first_batch_id
    seeded = entry.at(journal.late_watermark_ms, entry.batch_time_ms)
    if first == 0:
        seeded = seeded.without_confs(*_FREE_CONFS)
    files.empty("offsets", "commits")
    reached("logs-cleared")
    live.write_generation(first, seeded, journal.watermark_ms)
    reached("logs-seeded")
    files.empty("state")
    files.delete("state")
    reached("state-cleared")


def _continue(files: CheckpointFiles, journal: Journal) -> None:
    """Put the watermark back to where it was, so that later rows are not late, and take the flushed state back."""
    live, work = Checkpoint(files), Checkpoint(files, journal.work)
    if not journal.flushes:
        return
    entry = live.offsets(journal.batch_id)
    live.write_offsets(journal.flush_batch_id, entry.at(journal.late_watermark_ms, entry.batch_time_ms))
    reached("offsets-continued")
    flushed = work if work.newest_commit == journal.flush_batch_id else live
    live.write_commit(journal.flush_batch_id, journal.watermark_ms, flushed)
    reached("commits-continued")
    name_schemas_in_place(files, journal.work)
    return_state(files, journal)
    reached("state-returned")


def lift_fence(files: CheckpointFiles, journal: Journal) -> Journal:
    """Let the next version start; with policy Keep the fence stays, and says so."""
    live = Checkpoint(files)
    if journal.checkpoint_policy == "Reseed":
        live.write_metadata(Checkpoint.new_metadata())
    elif journal.checkpoint_policy == "Continue":
        live.write_metadata(journal.metadata)
    else:
        live.write_metadata(kept_line(journal.drain_id))
    reached("fence-lifted")
    return write_journal(files, journal.at(JournalStep.DONE))


def prune_archives(files: CheckpointFiles, retain: int | None) -> None:
    """Keep the newest ``retain`` generations, this drain's and those that a restore took away included; None keeps all."""
    if retain is None:
        return
    archives = [name for name in files.folders_by_age(DRAIN_FOLDER) if f"{DRAIN_FOLDER}/{name}" != EMPTY_STORE]
    for name in archives[: max(0, len(archives) - retain)]:
        files.delete(f"{DRAIN_FOLDER}/{name}")
