"""Give up a flush batch that fails for ever, or that only a lost version of the application could run."""

from __future__ import annotations

import dataclasses

from spark_drain_agent.checkpoint.batch_ids import refuse_reuse
from spark_drain_agent.checkpoint.fence import can_undo, never_fenced, unfence_overtaken
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.flush import copy_to_work, flush_committed
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, write_journal
from spark_drain_agent.checkpoint.seed import lift_fence, seed
from spark_drain_agent.checkpoint.sink_log import logged_batches
from spark_drain_agent.checkpoint.undo import finish_undo, undo

__all__ = ["NothingPendingError", "PendingBatchTakenError", "discard_pending"]


class NothingPendingError(Exception):
    """No flush batch is pending in the checkpoint."""


class PendingBatchTakenError(Exception):
    """The sink may have taken the pending batch, and would pass over the next one, which has its id; nothing was touched."""


def discard_pending(files: CheckpointFiles, journal: Journal | None, *, accept_reuse: bool = False) -> Journal:
    """End an interrupted drain without its flush; safe to repeat.

    With policy ``Reseed`` the drain goes on to its end: what is open is not emitted and stays in the archive. Otherwise the drain is
    undone, and nothing is lost.

    Raises
    ------
    NothingPendingError
        The checkpoint needs no such help; the message says why.
    PendingBatchTakenError
        The query would go on under an id that its sink may have seen, unless ``accept_reuse``.
    """
    if journal is not None and journal.step is JournalStep.UNDOING:
        return finish_undo(files, journal)
    unfence_overtaken(files, journal)
    if journal is None or journal.over or journal.being_undone or never_fenced(files, journal):
        raise NothingPendingError(f"{files.root}: no drain is under way, so no batch is pending")
    if journal.given_up:
        return lift_fence(files, journal if journal.step is JournalStep.SEEDED else seed(files, journal))
    if journal.step >= JournalStep.FLUSHED or flush_committed(files, journal):
        raise NothingPendingError(
            f"{files.root}: the flush of drain {journal.drain_id} is committed, nothing is pending: start any version under the agent, "
            "it ends the drain without running a batch"
        )
    taken = _may_be_taken(files, journal)
    if journal.checkpoint_policy != "Reseed":
        _refuse_reuse(files, journal, taken=taken, accepted=accept_reuse)
        return undo(files, journal, taken=taken)
    if journal.step is JournalStep.PREPARED:
        copy_to_work(files, journal)
    files.delete(f"{journal.work}/offsets/{journal.flush_batch_id}")
    # An id that the sink may have seen is passed over, but a file sink's log may have no gap.
    first = journal.flush_batch_id if journal.sink_folder and not taken else journal.first_batch_id
    journal = dataclasses.replace(
        journal,
        flushes=False,
        given_up=True,
        flush_may_be_taken=taken,
        first_batch_id=min(first, journal.first_batch_id),
        step=JournalStep.FLUSHED,
    )
    return lift_fence(files, seed(files, write_journal(files, journal)))


def _may_be_taken(files: CheckpointFiles, journal: Journal) -> bool:
    """Return whether the sink may have taken the pending batch: only a file sink's log says so for sure."""
    if not journal.flush_may_be_taken or can_undo(files, journal):
        return False
    if not journal.sink_folder:
        return True
    return journal.flush_batch_id in logged_batches(files.elsewhere(journal.sink_folder))


def _refuse_reuse(files: CheckpointFiles, journal: Journal, *, taken: bool, accepted: bool) -> None:
    refused = refuse_reuse(journal.sink_batch_ids, accepted=accepted)
    if taken and refused:
        raise PendingBatchTakenError(
            f"the sink of {files.root} {refused} and may have taken batch {journal.flush_batch_id}, the pending flush of drain "
            f"{journal.drain_id}, so it would skip the next batch: start the version that was drained under the agent, which ends the flush"
        )
