"""Reading the last records of the queries that a query depends on; they are drained and write no more."""

from __future__ import annotations

from spark_drain_agent.checkpoint.flush import FlushError
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.milestones import LOG
from spark_drain_agent.queries.catch_up import CatchUp
from spark_drain_agent.queries.freeze import FrozenQuery, QueryEndedError, freeze, terminate, wait_until_settled
from spark_drain_agent.queries.real_time import pause
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.sources import sources_without_end
from spark_drain_agent.user_code.batch_marks import marked

__all__ = ["follow"]


def follow(tracked: TrackedQuery, drain_id: str, *, bounded: bool) -> FrozenQuery | None:
    """Read up to the last record; returns the query frozen where it runs, None where it has ended.

    Where no query runs any more, a new start of it reads what there is.

    Raises
    ------
    FlushError
        It could not be read.
    """
    if tracked.query is not None and tracked.live.thread_alive and not bounded and not sources_without_end(tracked.live):
        try:
            return _caught_up(tracked)
        except QueryEndedError as error:
            LOG.warning(
                "drain %s: %s ended while it read the last records of the queries that it depends on, and is started again: %s",
                drain_id,
                tracked.label,
                error,
            )
    _read_available(tracked, tracked.checkpoint(), bounded=bounded)
    return None


def _caught_up(tracked: TrackedQuery) -> FrozenQuery:
    checkpoint = tracked.checkpoint()
    CatchUp(tracked.internals, tracked.live, checkpoint, _no_limit).wait()
    frozen = pause(tracked.live, _no_limit) if tracked.real_time else freeze(tracked.live, _no_limit)
    wait_until_settled(frozen.live, checkpoint, _no_limit)
    frozen.end()
    return frozen


def _read_available(tracked: TrackedQuery, checkpoint: Checkpoint, *, bounded: bool) -> None:
    if tracked.query is not None and tracked.live.thread_alive:
        if bounded:
            tracked.live.wait_until_ended(_no_limit)
        else:
            terminate(tracked.live, checkpoint)
    try:
        with marked(tracked.internals.context, tracked.local_properties()):
            tracked.internals.launch_available_at(tracked.as_started(), checkpoint.files.root).awaitTermination()
    except Exception as error:
        raise FlushError(f"reading the last records of the queries that it depends on failed: {error}") from error


def _no_limit() -> None:
    """Beyond the point of no return there is no giving up."""
