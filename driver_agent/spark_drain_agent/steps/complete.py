"""All steps on one checkpoint, from wherever its journal stands to the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_drain_agent.checkpoint import Checkpoint
from spark_drain_agent.filesystem import CheckpointFiles
from spark_drain_agent.journal import Journal, JournalStep, write_journal
from spark_drain_agent.steps.fence import fence
from spark_drain_agent.steps.flush import LaunchOnce, copy_to_work, flush, log_flush
from spark_drain_agent.steps.seed import lift_fence, prune_archives, seed
from spark_drain_agent.trace import reached

__all__ = ["Application", "Completed", "complete", "prepare"]


@dataclass(frozen=True)
class Application:
    """What the steps on a checkpoint need of the application whose query it is.

    Parameters
    ----------
    launch_once
        Starts the query's writer for the flush batch.
    check_version
        Raises when this application is not the version that planned the flush; asked only where a batch must run.
    export
        Writes the state to ``journal.state_export``.
    """

    launch_once: LaunchOnce
    check_version: Callable[[Journal], None]
    export: Callable[[Journal], None]


@dataclass(frozen=True)
class Completed:
    """A drained checkpoint.

    Parameters
    ----------
    journal
        Its last state.
    rows_after
        State rows left by the flush, per operator; empty when unknown.
    """

    journal: Journal
    rows_after: tuple[int, ...]


def prepare(files: CheckpointFiles, journal: Journal) -> Journal:
    """Write the journal: from here on every restart knows of the drain."""
    written = write_journal(files, journal)
    reached("prepared")
    return written


def complete(files: CheckpointFiles, journal: Journal, application: Application, retain_archives: int | None = None) -> Completed:
    """Do what the journal says is still missing.

    Parameters
    ----------
    files, journal
        The checkpoint and its journal, at any step.
    application
        What only the application can do.
    retain_archives
        See `prune_archives`.

    Raises
    ------
    FlushError
        The flush batch failed; call again to retry.
    ExportError
        The state could not be exported; call again to retry.
    """
    rows_after: tuple[int, ...] = ()
    if journal.step < JournalStep.FENCED:
        journal = fence(files, journal)
    if journal.state_export and journal.step < JournalStep.COPIED and files.exists("state"):
        application.export(journal)  # before the state is moved: transformWithState's metadata names its schema by its whole path
        reached("state-exported")
    if journal.copies and journal.step < JournalStep.COPIED:
        journal = copy_to_work(files, journal)
    if journal.flushes:
        if journal.step < JournalStep.FLUSH_LOGGED:
            journal = log_flush(files, journal)
        if journal.step < JournalStep.FLUSHED:
            if Checkpoint(files, journal.work).newest_commit != journal.flush_batch_id:
                application.check_version(journal)
            result = flush(files, journal, application.launch_once)
            journal, rows_after = result.journal, result.rows_after
    if journal.step < JournalStep.SEEDED:
        journal = seed(files, journal)
    if journal.step < JournalStep.DONE:
        journal = lift_fence(files, journal)
        prune_archives(files, retain_archives)
    return Completed(journal, rows_after)
