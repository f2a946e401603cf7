"""Give up a flush batch that fails for ever, or that only a lost version of the application could run."""

from __future__ import annotations

import dataclasses

from spark_drain_agent.checkpoint.fence import never_fenced, return_state, undo
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.flush import copy_to_work, flush_committed
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, write_journal
from spark_drain_agent.checkpoint.restore import forget_after
from spark_drain_agent.checkpoint.seed import lift_fence, seed

__all__ = ["NothingPendingError", "discard_pending"]


class NothingPendingError(Exception):
    """No flush batch is pending in the checkpoint."""


def discard_pending(files: CheckpointFiles, journal: Journal | None) -> Journal:
    """End an interrupted drain without its flush; safe to repeat.

    With policy ``Reseed`` the drain goes on to its end: what is open is not emitted and stays in the archive. Otherwise the drain is
    undone, and nothing is lost.

    Raises
    ------
    NothingPendingError
        The checkpoint needs no such help; the message says why.
    """
    if journal is None or journal.over or journal.step is JournalStep.RESTORING or never_fenced(files, journal):
        raise NothingPendingError(f"{files.root}: no drain is under way, so no batch is pending")
    if journal.step >= JournalStep.FLUSHED or flush_committed(files, journal):
        raise NothingPendingError(
            f"{files.root}: the flush of drain {journal.drain_id} is committed, nothing is pending: start any version under the agent, "
            "it ends the drain without running a batch"
        )
    if journal.checkpoint_policy != "Reseed":
        return_state(files, journal)
        forget_after(files, journal.batch_id)
        undo(files, journal)
        return journal.at(JournalStep.UNDONE)
    if journal.step is JournalStep.PREPARED:
        copy_to_work(files, journal)
    files.delete(f"{journal.work}/offsets/{journal.flush_batch_id}")
    files.delete(journal.staged)
    first = _first_unseen_batch(files, journal)
    journal = write_journal(files, dataclasses.replace(journal, flushes=False, step=JournalStep.FLUSHED, first_batch_id=first))
    return lift_fence(files, seed(files, journal))


def _first_unseen_batch(files: CheckpointFiles, journal: Journal) -> int:
    """Return where batch ids go on after a flush of which nobody knows how far it came.

    A sink may have taken the batch, so its id is passed over. Only the file sink's log says what it has taken, and may have no gap.
    """
    if journal.first_batch_id == 0 or not journal.sink_folder:
        return journal.first_batch_id
    names = files.elsewhere(journal.sink_folder).names("_spark_metadata")
    taken = [int(name.removesuffix(".compact")) for name in names if name.removesuffix(".compact").isdigit()]
    return max([journal.batch_id, *taken]) + 1
