"""Fire every open window and timer: one batch at the end of time, on a copy of the logs, with the query's own writer and sink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.checkpoint import END_OF_TIME_MS, Checkpoint
from spark_drain_agent.filesystem import CheckpointFiles
from spark_drain_agent.journal import Journal, JournalStep, write_journal
from spark_drain_agent.trace import reached

__all__ = ["FlushError", "FlushResult", "copy_to_work", "flush", "log_flush", "settle"]

LaunchOnce = Callable[[str], StreamingQuery]
"""Starts the query's writer for one batch on the checkpoint at a URI."""


class FlushError(Exception):
    """A batch failed; what it had logged is executed again by the next try."""


@dataclass(frozen=True)
class FlushResult:
    """What is known after the flush batch.

    Parameters
    ----------
    journal
        After the step.
    rows_after
        State rows that are left, per operator in Spark's order; empty when the batch ran in an earlier life of the driver.
    """

    journal: Journal
    rows_after: tuple[int, ...]


def settle(files: CheckpointFiles, launch_once: LaunchOnce) -> None:
    """Execute a batch that was planned but not committed.

    Without such a batch nothing is started: Spark would plan a new one and read on, ignoring the source's rate limit (measured).
    """
    checkpoint = Checkpoint(files)
    if not checkpoint.settled:
        _run_once(launch_once, checkpoint)
        reached("settled")


def copy_to_work(files: CheckpointFiles, journal: Journal) -> Journal:
    """Make the work copy: logs are copied, ``state`` is moved, since copying it would take as long as it is large."""
    live, work = Checkpoint(files), Checkpoint(files, journal.work)
    for part in ("offsets", "commits", "sources"):
        files.delete(work.name(part))
        if files.exists(live.name(part)):
            files.copy(live.name(part), work.name(part))
    work.write_metadata(journal.metadata)
    reached("logs-copied")
    if files.exists(live.name("state")) and not files.exists(work.name("state")):
        files.move(live.name("state"), work.name("state"))
    reached("state-moved")
    _keep_schemas_in_place(files, live, work)
    return write_journal(files, journal.at(JournalStep.COPIED))


def _keep_schemas_in_place(files: CheckpointFiles, live: Checkpoint, work: Checkpoint) -> None:
    """Leave a copy of the state schemas where they were.

    The metadata of transformWithState names them by their whole path, so the flush, or state that is taken back, fails without (4.2).
    """
    for operator in files.names(work.name("state")):
        schemas = f"state/{operator}/_stateSchema"
        if files.exists(work.name(schemas)):
            files.delete(live.name(schemas))
            files.copy(work.name(schemas), live.name(schemas))


def log_flush(files: CheckpointFiles, journal: Journal) -> Journal:
    """Plan the flush batch: the last batch's offsets, so that nothing is read, with watermark and clock at the end of time."""
    work = Checkpoint(files, journal.work)
    entry = work.offsets(journal.batch_id).at(END_OF_TIME_MS, END_OF_TIME_MS)
    work.write_offsets(journal.flush_batch_id, entry)
    reached("flush-logged")
    return write_journal(files, journal.at(JournalStep.FLUSH_LOGGED))


def flush(files: CheckpointFiles, journal: Journal, launch_once: LaunchOnce) -> FlushResult:
    """Run the planned flush batch.

    Raises
    ------
    FlushError
        The batch failed, for example in user code; it can be tried again.
    """
    work = Checkpoint(files, journal.work)
    rows_after: tuple[int, ...] = ()
    if work.newest_commit != journal.flush_batch_id:
        query = _run_once(launch_once, work)
        progress = query.lastProgress
        if progress is not None:
            rows_after = tuple(int(operator["numRowsTotal"]) for operator in progress["stateOperators"])
    if work.newest_commit != journal.flush_batch_id:
        raise FlushError(f"batch {journal.flush_batch_id} ended without a commit in {files.uri(work.name('commits'))}")
    reached("flush-committed")
    return FlushResult(write_journal(files, journal.at(JournalStep.FLUSHED)), rows_after)


def _run_once(launch_once: LaunchOnce, checkpoint: Checkpoint) -> StreamingQuery:
    uri = checkpoint.files.uri(checkpoint.name("")) if checkpoint.name("") else checkpoint.files.root
    try:
        query = launch_once(uri.rstrip("/"))
        query.awaitTermination()
    except Exception as error:
        raise FlushError(f"batch {checkpoint.newest_offsets} failed: {error}") from error
    return query
