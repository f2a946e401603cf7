"""All steps on one checkpoint, from wherever its journal stands to the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_drain_agent.filesystem import CheckpointFiles
from spark_drain_agent.journal import Journal, JournalStep, write_journal
from spark_drain_agent.steps.fence import fence
from spark_drain_agent.steps.flush import LaunchOnce, archive_running_flush, copy_to_work, flush, flush_committed, log_flush
from spark_drain_agent.steps.seed import lift_fence, prune_archives, seed
from spark_drain_agent.trace import reached

__all__ = ["Completed", "complete", "prepare"]


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


def complete(
    files: CheckpointFiles,
    journal: Journal,
    launch_once: LaunchOnce,
    check_version: Callable[[Journal], None],
    retain_archives: int | None = None,
) -> Completed:
    """Do what the journal says is still missing.

    Parameters
    ----------
    files, journal
        The checkpoint and its journal, at any step.
    launch_once
        Starts the query's writer for one batch.
    check_version
        Raises when this application is not the version that planned the flush; asked only where a batch must run.
    retain_archives
        See `prune_archives`.

    Raises
    ------
    FlushError
        The flush batch failed; call again to retry.
    """
    rows_after: tuple[int, ...] = ()
    if journal.step < JournalStep.FLUSHED:
        fence(files, journal)
        rows_after = _flush(files, journal, launch_once, check_version)
        journal = write_journal(files, journal.at(JournalStep.FLUSHED))
    if journal.step < JournalStep.SEEDED:
        journal = seed(files, journal)
    if journal.step < JournalStep.DONE:
        journal = lift_fence(files, journal)
        prune_archives(files, retain_archives)
    return Completed(journal, rows_after)


def _flush(files: CheckpointFiles, journal: Journal, launch_once: LaunchOnce, check_version: Callable[[Journal], None]) -> tuple[int, ...]:
    if not journal.flushes:
        if journal.checkpoint_policy == "Reseed":
            copy_to_work(files, journal)
        return ()
    if journal.step is JournalStep.PREPARED and flush_committed(files, journal):
        archive_running_flush(files, journal)
        return ()
    if journal.step < JournalStep.FLUSH_LOGGED:
        copy_to_work(files, journal)
        journal = log_flush(files, journal)
    if flush_committed(files, journal):
        return ()
    check_version(journal)
    return flush(files, journal, launch_once)
