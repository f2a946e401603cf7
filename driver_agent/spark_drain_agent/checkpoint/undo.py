"""Put a checkpoint back as it was before a drain: decided in the journal first, done behind the fence, which goes last."""

from __future__ import annotations

from dataclasses import replace

from spark_drain_agent.checkpoint.batch_ids import BatchIds
from spark_drain_agent.checkpoint.fence import held, never_fenced, return_state
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, write_journal
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.checkpoint.state_files import versions_of
from spark_drain_agent.checkpoint.state_schemas import schemas_after
from spark_drain_agent.milestones import reached

__all__ = ["finish_undo", "undo"]


def undo(files: CheckpointFiles, journal: Journal, *, taken: bool = False) -> Journal:
    """Undo a drain; safe to stop anywhere, `finish_undo` does the rest.

    Parameters
    ----------
    files, journal
        The checkpoint and its journal.
    taken
        Whether the sink may have rows of the flush batch: where it may know query and batch id, the query gets another id.
    """
    if never_fenced(files, journal):  # nothing was changed, and any Spark may have run further batches since
        files.delete(journal.work)
        return write_journal(files, journal.undone())
    metadata = Checkpoint.new_metadata() if taken and journal.sink_batch_ids is BatchIds.BY_QUERY else journal.metadata
    decided = write_journal(files, replace(journal.at(JournalStep.UNDOING), metadata=metadata))
    reached("undoing")
    return finish_undo(files, decided)


def finish_undo(files: CheckpointFiles, journal: Journal) -> Journal:
    """Do what an undo that was begun has left to do."""
    live = Checkpoint(files)
    if held(files):  # without it the checkpoint is as it was, and any Spark may have run further batches
        return_state(files, journal)
        _forget_after(files, journal.batch_id)
        live.write_metadata(journal.metadata)
        reached("metadata-restored")
    files.delete(journal.work)  # an empty archive would count as one of those to be retained
    reached("work-removed")
    return write_journal(files, journal.undone())


def _forget_after(files: CheckpointFiles, batch_id: int) -> None:
    """Remove the flush batch, and all else that is newer than a batch.

    State files of a later version must go too: Spark would take a snapshot that the flush has left for one of the batch that is to
    come under the same id, and go on with its schemas.
    """
    for log in ("offsets", "commits"):
        for name in files.names(log):
            if name.lstrip("-").isdigit() and int(name) > batch_id:
                files.delete(f"{log}/{name}")
    of_state = files.below("state")
    later = [name for name, version in versions_of(of_state).items() if version > batch_id + 1]
    for name in (*later, *schemas_after(of_state, batch_id)):
        files.delete(name)
