"""Fire every open window and timer: one batch at the end of time, on a copy of the logs, with the query's own writer and sink.

Only the watermark goes to the end of time. The clock, as ``current_timestamp()`` shows it, is the real one, unless timers follow it.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.agent_thread import NO_FLUSH_WITHOUT_THREADS, no_thread_starts
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, write_journal
from spark_drain_agent.checkpoint.logs import END_OF_TIME_MS, END_OF_TIMERS_MS, Checkpoint, OffsetEntry
from spark_drain_agent.checkpoint.state_files import lacking, lacking_ids, needed_state
from spark_drain_agent.clock import wall
from spark_drain_agent.milestones import reached
from spark_drain_agent.spark_internals.errors import interrupted
from spark_drain_agent.spark_internals.live_query import OperatorState, operator_states

__all__ = [
    "FlushError",
    "NoThreadStartsError",
    "archive_beside_flush",
    "archive_running_flush",
    "check_state",
    "copy_to_work",
    "flush",
    "flush_committed",
    "log_flush",
    "settle",
]

_PARTITIONS = "spark.sql.shuffle.partitions"

LaunchOnce = Callable[[str], StreamingQuery]
"""Starts the query's writer for one batch on the checkpoint at a URI."""


class FlushError(Exception):
    """A batch failed; what it had logged is executed again by the next try."""


class NoThreadStartsError(FlushError):
    """No batch is begun, since one that calls Python would wait for ever: py4j has a thread of Python's for each of the JVM's."""


def settle(files: CheckpointFiles, launch_once: LaunchOnce) -> None:
    """Execute a batch that was planned but not committed.

    Without such a batch nothing is started: Spark would plan a new one and read on, ignoring the source's rate limit (measured).
    """
    checkpoint = Checkpoint(files)
    if not checkpoint.settled:
        _run_once(launch_once, checkpoint)
        reached("settled")


def flush_committed(files: CheckpointFiles, journal: Journal) -> bool:
    """Return whether the flush batch is committed, in the live logs or in the work copy."""
    return any(files.is_file(log.name(f"commits/{journal.flush_batch_id}")) for log in (Checkpoint(files), Checkpoint(files, journal.work)))


def copy_to_work(files: CheckpointFiles, journal: Journal) -> Checkpoint:
    """Make the work copy, and return its logs: of those what Spark asks for, and the state, which is renamed where that is atomic."""
    earlier = files.below_all([f"{journal.work}/{log}" for log in ("offsets", "commits")])
    copied = _copy_logs(files, journal, journal.flush_batch_id)
    files.delete_files(*(name for name in earlier if name not in copied))
    _copy_sources(files, journal)
    reached("logs-copied")
    moved = _take_state(files, journal)
    reached("state-moved")
    if moved or earlier:  # an interrupted try may have moved them
        _keep_schemas_in_place(files, Checkpoint(files), Checkpoint(files, journal.work))
    return Checkpoint(files, journal.work, copied)


def archive_beside_flush(files: CheckpointFiles, journal: Journal) -> None:
    """Archive what a flush in the running query does not change, while it runs."""
    _copy_logs(files, journal, journal.batch_id)
    _copy_sources(files, journal)


def archive_running_flush(files: CheckpointFiles, journal: Journal, *, begun: bool = False) -> None:
    """Archive the rest once a running query has flushed. That it did so the live logs say, until the journal does.

    What `archive_beside_flush` has written is not looked for where it was ``begun`` a moment ago.
    """
    if not begun and not _archived_beside(files, journal):
        archive_beside_flush(files, journal)
    reached("logs-copied")
    if journal.checkpoint_policy != "Continue":
        _take_state(files, journal)
    reached("state-moved")


def _archived_beside(files: CheckpointFiles, journal: Journal) -> bool:
    """Whether `archive_beside_flush` was through; earlier versions of this agent wrote the metadata first."""
    names = ("metadata", f"offsets/{journal.batch_id}", f"commits/{journal.batch_id}")
    return all(files.is_file(f"{journal.work}/{name}") for name in names)


def _copy_logs(files: CheckpointFiles, journal: Journal, newest: int) -> dict[str, str]:
    """Copy the entries that Spark asks for, of a hundred retained ones the last two, up to one; return them by name in the work copy."""
    live, work = Checkpoint(files), Checkpoint(files, journal.work)
    wanted = [f"{log}/{batch_id}" for log in ("offsets", "commits") for batch_id in range(journal.batch_id - 1, newest + 1)]
    texts = files.read_all([live.name(name) for name in wanted])
    copied = {work.name(name): text for name in wanted if (text := texts[live.name(name)]) is not None}
    files.write_all(copied)
    return copied


def _copy_sources(files: CheckpointFiles, journal: Journal) -> None:
    """Copy what sources remember, which a frozen query does not change, and the query's id, last."""
    live, work = Checkpoint(files), Checkpoint(files, journal.work)
    files.delete(work.name("sources"))
    if files.is_folder(live.name("sources")):
        files.copy(live.name("sources"), work.name("sources"))
    work.write_metadata(journal.metadata)


def _take_state(files: CheckpointFiles, journal: Journal) -> bool:
    """Bring the state after the newest batch to the work copy, and return whether it has left its place; the rest stays, to be removed."""
    live, work = Checkpoint(files), Checkpoint(files, journal.work)
    return files.take(live.name("state"), work.name("state"), lambda names: needed_state(names, journal.batch_id + 1))


def _keep_schemas_in_place(files: CheckpointFiles, live: Checkpoint, work: Checkpoint) -> None:
    """Leave a copy of the state schemas where they were.

    The metadata of transformWithState names them by their whole path, so the flush, or state that is taken back, fails without (4.2).
    """
    for operator in files.names(work.name("state")):
        schemas = f"state/{operator}/_stateSchema"
        if files.is_folder(work.name(schemas)):
            files.delete(live.name(schemas))
            files.copy(work.name(schemas), live.name(schemas))


def log_flush(files: CheckpointFiles, journal: Journal, work: Checkpoint) -> Journal:
    """Plan the flush batch in a work copy: the last batch's offsets, so that nothing is read, with the watermark at the end of time."""
    _pin_partitions(work, journal)
    work.write_offsets(journal.flush_batch_id, _planned_by_running_query(work, journal) or _flush_entry(work, journal))
    reached("flush-logged")
    return write_journal(files, journal.at(JournalStep.FLUSH_LOGGED))


def _pin_partitions(work: Checkpoint, journal: Journal) -> None:
    """Write the number of partitions into entries that have none, as those of the newer offset log.

    Spark 4.2 looks for it when it finds a batch without a commit, and cannot start such a checkpoint without (measured, without any drain).
    """
    entries = {batch_id: work.find_offsets(batch_id) for batch_id in (journal.batch_id, journal.flush_batch_id)}
    without = {batch_id: entry for batch_id, entry in entries.items() if entry is not None and _PARTITIONS not in entry.confs}
    partitions = work.state_partitions if without else None
    for batch_id, entry in without.items():
        if partitions is not None:
            work.write_offsets(batch_id, entry.with_confs({_PARTITIONS: str(partitions), **entry.confs}))


def _planned_by_running_query(work: Checkpoint, journal: Journal) -> OffsetEntry | None:
    """Return the flush batch that a running query had planned: whatever it has written already, the same clock makes the same rows."""
    planned = work.find_offsets(journal.flush_batch_id)
    return planned if planned is not None and planned.watermark_ms == END_OF_TIME_MS else None


def _flush_entry(work: Checkpoint, journal: Journal) -> OffsetEntry:
    last = work.offsets(journal.batch_id)
    now_ms = max(int(wall() * 1000), last.batch_time_ms)  # Spark's clock never goes back from batch to batch
    return last.at(END_OF_TIME_MS, END_OF_TIMERS_MS if journal.processing_time else now_ms)


def check_state(files: CheckpointFiles, journal: Journal) -> None:
    """Take the flush's commit back where a part of the state that goes on was not written, which one of Spark's file managers hides.

    Raises
    ------
    FlushError
        It was not; the batch is executed again by the next try.
    """
    work, batch_id = Checkpoint(files, journal.work), journal.flush_batch_id
    if journal.checkpoint_policy != "Continue" or not files.spark_hides_failures:
        return
    names = files.below(work.name("state"))
    missing = [*lacking(names, batch_id + 1), *lacking_ids(names, batch_id + 1, work.state_ids(batch_id))]
    if missing:
        files.delete(work.name(f"commits/{batch_id}"))
        raise FlushError(f"the state after batch {batch_id} was not written, in {missing[0]}: Spark's log says why (Error closing)")


def flush(files: CheckpointFiles, journal: Journal, launch_once: LaunchOnce, *, planned: bool = False) -> tuple[OperatorState, ...]:
    """Run the planned flush batch.

    Parameters
    ----------
    files, journal
        The checkpoint and its journal.
    launch_once
        Starts the query.
    planned
        Whether it was planned a moment ago.

    Returns
    -------
    tuple of OperatorState
        What is left, per operator in Spark's order; empty where Spark does not say.

    Raises
    ------
    FlushError
        The batch failed, for example in user code; it can be tried again.
    """
    work = Checkpoint(files, journal.work)
    if not planned and work.newest_offsets != journal.flush_batch_id:  # Spark would plan a batch of its own, and read on
        raise FlushError(
            f"batch {journal.flush_batch_id} is not planned any more in {files.uri(work.name('offsets'))}; `python -m spark_drain_agent "
            "recover --discard-pending` was interrupted: run it again"
        )
    query = _run_once(launch_once, work)
    if work.newest_commit != journal.flush_batch_id:
        raise FlushError(f"batch {journal.flush_batch_id} ended without a commit in {files.uri(work.name('commits'))}")
    check_state(files, journal)
    reached("flush-committed")
    return operator_states(query)


def _run_once(launch_once: LaunchOnce, checkpoint: Checkpoint) -> StreamingQuery:
    if no_thread_starts():
        raise NoThreadStartsError(NO_FLUSH_WITHOUT_THREADS)
    uri = checkpoint.files.uri(checkpoint.name("")) if checkpoint.name("") else checkpoint.files.root
    try:
        query = launch_once(uri.rstrip("/"))
        query.awaitTermination()
    except Exception as error:
        if interrupted(error):
            raise
        raise FlushError(f"batch {checkpoint.newest_offsets} failed: {error}") from error
    return query
