"""Before a query starts on a checkpoint that a drain has left without state."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.checkpoint.empty_state import (
    EmptyStateError,
    NextVersion,
    OtherVersionError,
    awaits_first_batch,
    begin_generation,
    interrupted_version,
    refuse_taken_elsewhere,
)
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, write_journal
from spark_drain_agent.checkpoint.lease import Lease, acquire_lease
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.checkpoint.sink_log import SinkLogError, logged_batches, prepare_sink_log
from spark_drain_agent.clock import monotonic
from spark_drain_agent.milestones import LOG
from spark_drain_agent.queries.tracked import TrackedQuery, owners_word
from spark_drain_agent.spark_internals.errors import JavaError, UnsupportedSparkError
from spark_drain_agent.spark_internals.sink_code import sink_place
from spark_drain_agent.spark_internals.state_stores import (
    STATE_FORMAT,
    EmptyStore,
    OperatorStores,
    empty_store,
    late_snapshots_seconds,
    pinned_confs,
    planned_stores,
)
from spark_drain_agent.start_waits import pause

__all__ = ["prepare_first_start"]

_WITHOUT_MEMORY = frozenset(["console", "memory", "noop"])
"""Sinks that know of nothing once the application has ended."""
_PLACES = ("topic", "database", "keyspace", "dbtable", "table", "collection", "index", "streamName")
"""Options by which sinks are told where to write; any other one may differ from run to run, or be what mends a start that failed."""
_WITHOUT_IDS = "kafka"
"""The sink that takes a batch again when it is repeated."""
_FOLDER = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
_OF_FOLDERS = '"logOffset"'
"""In the offsets of Spark's file source (`FileStreamSourceOffset`)."""
_MERGED_EVERY = "spark.sql.streaming.fileSink.log.compactInterval"
_QUIET_SECONDS = 0.5
_LOOK_SECONDS = 0.5
_START_SECONDS = 120.0
_UPLOADS_SECONDS = 10.0
_TICK_SECONDS = 3.0
"""How long after its time a maintenance thread may begin."""


def prepare_first_start(tracked: TrackedQuery, journal: Journal, running: Callable[[], bool], ended: float | None) -> None:
    """Give a generation without state what its first batch looks for, and a file sink its log; does nothing for any other start.

    Parameters
    ----------
    tracked, journal
        The query that is about to start, and the journal of its checkpoint.
    running
        Returns whether another query of this driver runs on the checkpoint.
    ended
        When this driver, which has worked on the drain, has last ended a query for one, by the monotonic clock; None where it was
        another driver, all of whose executors are gone.

    Raises
    ------
    CheckpointLeasedError
        Another driver is doing the same.
    EmptyStateError
        This version cannot begin there; the message says why, and names the way out.
    """
    internals, files = tracked.internals, tracked.checkpoint_files()
    if not awaits_first_batch(files, journal):
        if _awaits_next_batch(files, journal):
            _prepare_next(tracked, files, journal)
        return
    lease = acquire_lease(files, internals)
    try:
        if ended is not None and (journal.flushes or journal.checkpoint_policy != "Continue"):  # else it has no state
            _let_uploads_end(tracked, files, ended)
        _prepare(tracked, files, journal, running)
        threading.Thread(
            target=_keep_until_committed, args=(lease, tracked, files, journal, running), name="spark-drain-first-batch", daemon=True
        ).start()
    except BaseException as error:
        lease.release_after(error)
        raise


def _awaits_next_batch(files: CheckpointFiles, journal: Journal) -> bool:
    """Return whether a generation that goes on with the state of the one before has not committed a batch."""
    goes_on = journal.step is JournalStep.DONE and journal.checkpoint_policy == "Continue" and journal.flushes
    return goes_on and Checkpoint(files).newest_commit == journal.flush_batch_id


def _prepare_next(tracked: TrackedQuery, files: CheckpointFiles, journal: Journal) -> None:
    first, folder = journal.flush_batch_id + 1, tracked.next_sink_folder()
    sink = _sink(tracked, folder)
    try:
        _check_names(tracked, files)
        if files.is_file(f"offsets/{first}"):
            refuse_taken_elsewhere(files, journal, first, sink, partial(_has_taken, files, sink))
        else:
            files.drop_checksum(f"offsets/{first}")  # where its owner has removed the entry
        _prepare_sink_log(tracked, files, folder, first)
    except (EmptyStateError, SinkLogError) as error:
        raise EmptyStateError(f"{tracked.label} cannot go on with batch {first}, as drain {journal.drain_id} left it: {error}") from error
    if journal.begun_sink != sink:
        write_journal(files, replace(journal, begun_sink=sink))


def _sink(tracked: TrackedQuery, folder: str | None) -> str:
    """Return what the query writes to, see `Journal.begun_sink`."""
    captured = tracked.captured
    where = captured.table
    if not where:
        options = ".".join(filter(None, map(captured.option, _PLACES)))
        where = " ".join(filter(None, (sink_place(tracked.internals, captured), options)))
    return folder or " to ".join(filter(None, (captured.source.lower(), where)))


def _prepare_sink_log(tracked: TrackedQuery, files: CheckpointFiles, folder: str | None, first: int) -> None:
    """Let the log of a file sink begin with what another one has; see `next_sink_folder` for the folder."""
    if folder is None and first > 0:
        raise SinkLogError(f"table {tracked.captured.table} does not exist yet, and its files' log cannot begin there: create it first")
    if folder:
        merged_every = int(tracked.internals.session_conf(_MERGED_EVERY, "10"))
        prepare_sink_log(files.elsewhere(folder), first, merged_every, planned=files.is_file(f"offsets/{first}"))


def _keep_until_committed(
    lease: Lease, tracked: TrackedQuery, files: CheckpointFiles, journal: Journal, running: Callable[[], bool]
) -> None:
    """Keep other drivers away: one that prepares its own start would delete what the first batch has written."""
    give_up = monotonic() + _START_SECONDS

    def may_write() -> bool:
        if tracked.internals.stop_returned or tracked.ended:
            return False
        return tracked.query is not None or (monotonic() < give_up and (not tracked.refused or running()))

    def awaited() -> bool:
        try:
            idle = tracked.query is not None and not tracked.live.planned_a_batch  # as long as there is no input: the store is not asked
            return idle or awaits_first_batch(files, journal)
        except (*JavaError, OSError) as error:
            if tracked.internals.jvm_ended:
                raise
            LOG.warning("whether the first batch of %s is committed is not known: %s", tracked.label, error)
            return True

    with as_agent():
        try:
            while may_write() and awaited():
                time.sleep(_LOOK_SECONDS)
            lease.release()
        except Exception as error:
            lease.fall_silent()  # who waits for its end would do so for ever
            if not isinstance(error, (*JavaError, OSError)):  # Spark was stopped
                raise


def _prepare(tracked: TrackedQuery, files: CheckpointFiles, journal: Journal, running: Callable[[], bool]) -> None:
    internals = tracked.internals

    def stores(metadata: str) -> Sequence[OperatorStores]:
        found = planned_stores(internals, tracked.captured, files.root, metadata)
        if found and (state_format := internals.session_conf(STATE_FORMAT, "1")) != "1":
            raise EmptyStateError(f"{STATE_FORMAT} is {state_format}, and no empty state can be made in that format: start it with 1")
        return found

    def make_empty(confs: Mapping[str, str], folder: str) -> EmptyStore:
        return empty_store(internals, confs, folder)

    folder, first = tracked.next_sink_folder(), journal.first_batch_id
    sink = _sink(tracked, folder)
    confs = partial(pinned_confs, internals)
    interrupted = interrupted_version(journal)
    same = interrupted != "" and tracked.captured.same_version_as == interrupted
    taken = partial(_has_taken, files, sink)
    version = NextVersion(tracked.fingerprint, tracked.watermarks(), running, confs, stores, make_empty, sink, taken, same)
    try:
        _check_names(tracked, files)
        _prepare_sink_log(tracked, files, folder, first)
        begin_generation(files, journal, version)
    except (EmptyStateError, SinkLogError, UnsupportedSparkError) as error:
        word = f". If this is that version, and {owners_word(interrupted)}"
        raise EmptyStateError(
            f"{tracked.label} cannot begin with batch {journal.first_batch_id} and an empty state, as drain {journal.drain_id} left it: "
            f"{error}{word if interrupted and isinstance(error, OtherVersionError) else ''}"
        ) from error


def _check_names(tracked: TrackedQuery, files: CheckpointFiles) -> None:
    """Refuse names for folders that the checkpoint has by number: Spark has kept under the number what it has read of them."""
    checkpoint = Checkpoint(files)
    newest = checkpoint.newest_commit
    if newest is None or (entry := checkpoint.offsets(newest)).named or not any(_OF_FOLDERS in offset for offset in entry.offsets):
        return
    if names := tracked.internals.source_names(tracked.captured):
        raise EmptyStateError(
            f"the version that was drained has read folders by sources without names, and this one gives its sources names: "
            f"{', '.join(names)}; leave them out, or start it on a new checkpoint"
        )


def _has_taken(files: CheckpointFiles, own: str, sink: str, batch_id: int) -> bool | None:
    """Return whether a sink, see `Journal.begun_sink`, has a batch that this version's ``own`` one would pass over, or write once more.

    None where only the sink knows.
    """
    if _FOLDER.match(sink):
        return batch_id in logged_batches(files.elsewhere(sink))
    kind = sink.partition(" ")[0]
    return False if kind in _WITHOUT_MEMORY or (kind == _WITHOUT_IDS and sink == own) else None


def _let_uploads_end(tracked: TrackedQuery, files: CheckpointFiles, ended: float) -> None:
    """Wait until executors that outlive the drain upload no more of its state, which has the names that the empty one gets.

    Spark's maintenance uploads the last snapshots of a RocksDB store up to an interval after its query has ended, and unloads it then.
    """
    late = late_snapshots_seconds(tracked.internals)
    wait = max(0.0, ended + late + _TICK_SECONDS - monotonic()) if late else 0.0
    if wait:
        LOG.info("%s waits %.0f s, until Spark's maintenance has uploaded the last state of the drained query", tracked.label, wait)
    over = monotonic() + wait
    while monotonic() < over:
        pause(min(_LOOK_SECONDS, over - monotonic()))
        if tracked.internals.stopped:
            raise EmptyStateError(f"Spark was stopped while it waited {wait:.0f} s to start {tracked.label}; nothing was touched")
    give_up, known = monotonic() + _UPLOADS_SECONDS + late, files.below("state")
    while monotonic() < give_up:
        pause(_QUIET_SECONDS)
        found = files.below("state")
        if found == known:
            return
        known = found
