"""The fast way to flush: inside the running query, whose state is loaded already. Where it is not possible, `flush` does it.

The order is that of the sure way: journal, fence, flush. A crash or a failing batch leaves the live logs with the flush batch planned, and
`copy_to_work` takes it from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from spark_drain_agent.checkpoint.fence import set_fence
from spark_drain_agent.checkpoint.flush import FlushError, archive_beside_flush
from spark_drain_agent.checkpoint.journal import Journal
from spark_drain_agent.checkpoint.logs import END_OF_TIME_MS, Checkpoint
from spark_drain_agent.clock import monotonic
from spark_drain_agent.milestones import LOG, reached
from spark_drain_agent.queries.freeze import looked_at
from spark_drain_agent.spark_internals.errors import JavaError, UnsupportedSparkError
from spark_drain_agent.spark_internals.live_query import LiveQuery
from spark_drain_agent.spark_internals.relaunch import RETAINED
from spark_drain_agent.user_code.batch_marks import DRAIN_PANE_PROPERTY

__all__ = ["FLUSH_CONF", "FLUSH_VALUES", "RunningFlushFacts", "flush_running", "running_flush_obstacle"]

FLUSH_CONF = "spark.sparkdrain.flush"
FLUSH_VALUES = ("Auto", "WorkCopy")
"""``Auto`` (default), or ``WorkCopy``: never flush inside the running query."""

_POLL_SECONDS = 0.01
_LOOK_SECONDS = 0.2
_LONGEST_UNLOOKED_SECONDS = 2.0
_LONGEST_WAIT_MS = 1000
_UNPLANNED_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class RunningFlushFacts:
    """What decides whether a running query can flush itself.

    Parameters
    ----------
    setting
        Value of `FLUSH_CONF`.
    to_own_sink
        Whether incomplete windows go where the query writes.
    exports_state
        Whether the state is to be saved before.
    interval_ms
        Between triggers; None where the trigger has no interval.
    now_ms
        Milliseconds since the epoch: Spark's triggers are due at multiples of the interval.
    no_data_batches
        Whether Spark plans batches for a watermark alone.
    processing_time
        Whether an operator has timers that follow the clock.
    planned_a_batch
        Whether the query has planned a batch since it was started.
    retained
        Of how many batches Spark keeps the state.
    state_unsure
        Whether the state after the flush is needed, and Spark would not tell that the store has refused a part of it.
    """

    setting: str
    to_own_sink: bool
    exports_state: bool
    interval_ms: int | None
    now_ms: int
    no_data_batches: bool
    processing_time: bool
    planned_a_batch: bool
    retained: int
    state_unsure: bool


def running_flush_obstacle(facts: RunningFlushFacts) -> str:
    """Return why the flush needs the work copy, or "" where the running query can do it."""
    if facts.setting != FLUSH_VALUES[0]:
        return f"{FLUSH_CONF} is {facts.setting!r}"
    if not facts.to_own_sink:
        return "incomplete windows are not to go to its own sink"
    if facts.exports_state:
        return "its state is to be exported first"
    if facts.interval_ms is None:
        return "its trigger has no interval"
    if facts.processing_time:
        return "its processing-time timers would make more than one batch at the end of time"
    if not facts.no_data_batches:
        return "spark.sql.streaming.noDataMicroBatches.enabled is false"
    if not facts.planned_a_batch:
        return "it has run no batch since it was started"
    if facts.retained < 2:
        return f"{RETAINED} is {facts.retained}, so that the state before the flush would go with its commit"
    if facts.state_unsure:
        return "Spark's file manager does not tell whether the state that goes on was written"
    wait_ms = facts.interval_ms - facts.now_ms % facts.interval_ms if facts.interval_ms else 0
    # A query asleep between triggers cannot be woken without ending it; the work copy costs less than a second.
    return f"its next trigger is {wait_ms} ms away" if wait_ms > _LONGEST_WAIT_MS else ""


def flush_running(
    live: LiveQuery, checkpoint: Checkpoint, begin: Callable[[int | None], Journal | None], committed: int | None
) -> Journal | None:
    """Fence the checkpoint of a frozen query and let the query itself run the flush batch; where it does not, the work copy has to.

    Parameters
    ----------
    live
        The running query, frozen.
    checkpoint
        Its logs.
    begin
        Writes the journal after the newest batch, where there was one, of a checkpoint that is not fenced; None where there is nothing to
        flush.
    committed
        A batch that is known to be committed, None where none is.

    Returns
    -------
    Journal or None
        That of the drain whose flush batch the query has committed.

    Raises
    ------
    FlushError
        The batch failed.
    """
    journal = None
    while journal is None:
        with looked_at(live, checkpoint, committed=committed) as logs:
            # Without its sources, too, a query plans a batch when its watermark has risen.
            if logs.settled:
                journal = begin(logs.newest)
                if journal is None:
                    return None
                raised = False
                try:
                    set_fence(checkpoint.files, journal)
                    raised = _raise_watermark(live, journal)
                finally:
                    if not raised:
                        live.terminate()  # before it plans another batch, which would be taken for the flush
                if not raised:
                    return None
            elif not live.thread_alive:
                return None
        time.sleep(_POLL_SECONDS)
    reached("watermark-raised")
    archive_beside_flush(checkpoint.files, journal)  # each of these small files takes tens of milliseconds
    return journal if _commits(live, checkpoint, journal) else None


def _raise_watermark(live: LiveQuery, journal: Journal) -> bool:
    try:
        live.set_local_property(DRAIN_PANE_PROPERTY, "true")
        live.raise_watermark(journal.flush_batch_id, END_OF_TIME_MS)
    except (*JavaError, UnsupportedSparkError) as error:
        LOG.info("drain %s: the running query cannot flush itself: %s", journal.drain_id, error)
        return False
    return True


def _commits(live: LiveQuery, checkpoint: Checkpoint, journal: Journal) -> bool:
    """Wait for the commit of the flush batch; return False where the query does not plan it."""
    commit, offsets = (checkpoint.name(f"{log}/{journal.flush_batch_id}") for log in ("commits", "offsets"))
    give_up = monotonic() + _UNPLANNED_SECONDS
    look_at, seen_at = 0.0, monotonic()
    while True:
        # The store is asked when the query is between two batches, and now and then: each question to an object store is a request.
        if monotonic() >= look_at and (not live.trigger_active or monotonic() > seen_at + _LONGEST_UNLOOKED_SECONDS):
            alive = live.thread_alive
            if checkpoint.files.is_file(commit):
                reached("running-flush-committed")
                return True
            if not alive:
                raise FlushError(f"batch {journal.flush_batch_id} failed: {live.error or 'the query ended'}")
            if monotonic() > give_up and not live.trigger_active and not checkpoint.files.is_file(offsets):
                LOG.info("drain %s: the running query has planned no flush batch", journal.drain_id)
                return False
            seen_at = monotonic()
            look_at = seen_at if checkpoint.files.renames_atomically else seen_at + _LOOK_SECONDS
        time.sleep(_POLL_SECONDS)
