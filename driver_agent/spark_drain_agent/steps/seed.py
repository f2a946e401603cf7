"""Leave the checkpoint as the next version needs it, and lift the fence, last."""

from __future__ import annotations

from spark_drain_agent.checkpoint import Checkpoint
from spark_drain_agent.claim import CLAIM_FILES
from spark_drain_agent.filesystem import CheckpointFiles
from spark_drain_agent.journal import DRAIN_FOLDER, JOURNAL_FILE, Journal, JournalStep, write_journal
from spark_drain_agent.steps.fence import return_state
from spark_drain_agent.trace import reached

__all__ = ["clear_late_state", "lift_fence", "prune_archives", "seed", "stage_seed"]

_FREE_CONFS = ("spark.sql.shuffle.partitions", "spark.sql.streaming.stateStore.providerClass")
"""Confs that Spark pins because of existing state; a reseeded generation has none, so the next version may change them."""


def seed(files: CheckpointFiles, journal: Journal) -> Journal:
    """Rewrite the logs for the next start; safe to repeat, and safe to stop anywhere because the fence still stands."""
    if journal.checkpoint_policy == "Reseed":
        _reseed(files, journal)
    elif journal.checkpoint_policy == "Continue":
        _continue(files, journal)
    reached("seeded")
    return write_journal(files, journal.at(JournalStep.SEEDED))


def stage_seed(files: CheckpointFiles, journal: Journal) -> None:
    """Write the logs of a reseeded generation to where `seed` takes them from; the flush changes nothing in them, so it can go on beside.

    Batch ids -2 and -1 are seeded, so that the first batch is 0, begins at the drained offsets and finds no state. An entry 0 instead would
    be executed again from the very beginning; Spark asks for the entry before the newest, hence two.
    """
    if journal.checkpoint_policy != "Reseed":
        return
    live, work, staged = (Checkpoint(files, folder) for folder in ("", journal.work, journal.staged))
    source = work if files.exists(work.name(f"offsets/{journal.batch_id}")) else live
    entry = source.offsets(journal.batch_id)
    seeded = entry.at(journal.watermark_ms, int(entry.metadata.get("batchTimestampMs", 0))).without_confs(*_FREE_CONFS)
    staged.write_offsets(-2, seeded)
    staged.write_offsets(-1, seeded)
    staged.write_commit(-1, journal.watermark_ms)  # last: with it the seed is complete
    reached("seed-staged")


def _reseed(files: CheckpointFiles, journal: Journal) -> None:
    """Put the staged logs in place, commits last, and remove the state."""
    staged = Checkpoint(files, journal.staged)
    if not files.exists(staged.name("commits/-1")):
        stage_seed(files, journal)
    for log in ("offsets", "commits"):
        if files.exists(staged.name(log)):
            files.delete(log)
            reached(f"{log}-cleared")
            files.move(staged.name(log), log)
            reached(f"{log}-seeded")
    files.delete(journal.staged)
    files.delete("state")
    reached("state-cleared")


def _continue(files: CheckpointFiles, journal: Journal) -> None:
    """Put the watermark back to where it was, so that later rows are not late, and take the flushed state back."""
    live = Checkpoint(files)
    if not journal.flushes:
        return
    entry = live.offsets(journal.batch_id)
    live.write_offsets(journal.flush_batch_id, entry.at(journal.watermark_ms, int(entry.metadata.get("batchTimestampMs", 0))))
    reached("offsets-continued")
    live.write_commit(journal.flush_batch_id, journal.watermark_ms)
    reached("commits-continued")
    return_state(files, journal)
    reached("state-returned")


def lift_fence(files: CheckpointFiles, journal: Journal) -> Journal:
    """Let the next version start; with policy Keep the fence stays."""
    live = Checkpoint(files)
    if journal.checkpoint_policy == "Reseed":
        live.write_metadata(Checkpoint.new_metadata())
    elif journal.checkpoint_policy == "Continue":
        live.write_metadata(journal.metadata)
    reached("fence-lifted")
    return write_journal(files, journal.at(JournalStep.DONE))


def clear_late_state(files: CheckpointFiles, journal: Journal) -> None:
    """Before the first start of a reseeded generation: remove state that a maintenance thread of the old one uploaded late."""
    live = Checkpoint(files)
    if journal.step is JournalStep.DONE and journal.checkpoint_policy == "Reseed" and live.newest_commit == -1:
        files.delete(live.name("state"))


def prune_archives(files: CheckpointFiles, retain: int | None) -> None:
    """Keep the newest ``retain`` generations, this drain's and those that a restore took away included; None keeps all."""
    if retain is None:
        return
    archives = [name for name in files.names_by_age(DRAIN_FOLDER) if f"{DRAIN_FOLDER}/{name}" not in (JOURNAL_FILE, *CLAIM_FILES)]
    for name in archives[: max(0, len(archives) - retain)]:
        files.delete(f"{DRAIN_FOLDER}/{name}")
