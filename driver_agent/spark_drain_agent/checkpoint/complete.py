"""All steps on one checkpoint, from wherever its journal stands to the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_drain_agent.checkpoint.fence import fence, held, set_fence
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.flush import (
    LaunchOnce,
    archive_running_flush,
    check_state,
    copy_to_work,
    flush,
    flush_committed,
    log_flush,
)
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, MalformedJournalError, write_journal
from spark_drain_agent.checkpoint.logs import Checkpoint, OffsetEntry
from spark_drain_agent.checkpoint.seed import lift_fence, prune_archives, seed
from spark_drain_agent.milestones import reached
from spark_drain_agent.spark_internals.live_query import OperatorState

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
    left
        The state left by the flush, per operator; empty when unknown.
    """

    journal: Journal
    left: tuple[OperatorState, ...]


def prepare(files: CheckpointFiles, journal: Journal) -> Journal:
    """Write the journal: from here on every restart knows of the drain."""
    written = write_journal(files, journal)
    reached("prepared")
    return written


def complete(
    files: CheckpointFiles,
    journal: Journal,
    application: Application,
    retain_archives: int | None = None,
    *,
    flushed: bool = False,
    begun: bool = False,
    last: OffsetEntry | None = None,
) -> Completed:
    """Do what the journal says is still missing.

    Parameters
    ----------
    files, journal
        The checkpoint and its journal, at any step.
    application
        What only the application can do.
    retain_archives
        See `prune_archives`.
    flushed
        Whether the running query has just committed the flush batch.
    begun
        Whether the journal has just been written, of a checkpoint that was settled and without a fence.
    last
        The entry of the newest batch before the drain, where it is known.

    Raises
    ------
    FlushError
        The flush batch failed; call again to retry.
    ExportError
        The state could not be exported; call again to retry.
    MalformedJournalError
        The journal is older than the checkpoint; nothing was touched.
    """
    left: tuple[OperatorState, ...] = ()
    if journal.step in (JournalStep.FLUSH_LOGGED, JournalStep.FLUSHED) and not held(files):
        raise MalformedJournalError.old(files.root, journal.drain_id)
    if journal.step < JournalStep.FLUSHED:
        if flushed:
            archive_running_flush(files, journal, begun=True)
        else:
            (set_fence if begun else fence)(files, journal)
            left = _flush(files, journal, application, begun=begun)
        journal = write_journal(files, journal.at(JournalStep.FLUSHED))
        reached("flushed")
    if journal.step < JournalStep.SEEDED:
        journal = seed(files, journal, last)
    if journal.step < JournalStep.DONE:
        journal = lift_fence(files, journal)
        prune_archives(files, retain_archives)
    return Completed(journal, left)


def _flush(files: CheckpointFiles, journal: Journal, application: Application, *, begun: bool) -> tuple[OperatorState, ...]:
    if journal.step is JournalStep.PREPARED and not begun and flush_committed(files, journal):
        archive_running_flush(files, journal)
        return ()
    if journal.step is JournalStep.PREPARED:
        if journal.state_export and files.is_folder("state"):
            application.export(journal)  # before the state is moved: transformWithState's metadata names its schema by its whole path
            reached("state-exported")
        work = copy_to_work(files, journal) if journal.copies else Checkpoint(files, journal.work)
        if journal.flushes:
            journal = log_flush(files, journal, work)
    if not journal.flushes:
        return ()
    if not begun and flush_committed(files, journal):
        check_state(files, journal)
        return ()
    application.check_version(journal)
    return flush(files, journal, application.launch_once, planned=begun)
