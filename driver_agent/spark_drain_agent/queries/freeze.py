"""Stop reading without stopping the query, and end it at a batch boundary."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.clock import monotonic
from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.live_query import LiveQuery

__all__ = [
    "FrozenQuery",
    "QueryEndedError",
    "freeze",
    "looked_at",
    "newest_planned",
    "terminate",
    "wait_until_initialized",
    "wait_until_settled",
]

_POLL_SECONDS = 0.05
_BOUNDARY_SECONDS = 30.0
_END_SECONDS = 5.0


class QueryEndedError(Exception):
    """The query's thread ended while it was being drained; the message has its exception."""


@dataclass(frozen=True)
class Logs:
    """How the logs of a query stand.

    Parameters
    ----------
    newest
        The newest planned batch; None where there was never one.
    settled
        Whether it, and so every planned batch, is committed.
    """

    newest: int | None
    settled: bool


class FrozenQuery:
    """A query whose sources were taken away; `thaw` gives them back.

    Parameters
    ----------
    live
        The running query.
    taken
        What `LiveQuery.take_sources` returned.
    watermark_ms
        The watermark of the newest batch then; None where it is not known.
    """

    def __init__(self, live: LiveQuery, taken: Any, watermark_ms: int | None = None) -> None:
        self.live, self.watermark_ms = live, watermark_ms
        self._taken = taken

    @property
    def sources(self) -> tuple[str, ...]:
        """Descriptions of the sources, in the order of the offset log."""
        return tuple(self.live.sources)

    def end(self) -> None:
        """Note that there is no way back: `thaw` is not called any more."""

    def stop_sources(self) -> None:
        """Let the sources close their connections once the query has ended: its own end could not, it had none any more."""
        if self._taken is None or self.live.thread_alive:
            return
        self.live.put_sources(self._taken)
        self._taken = None
        try:
            self.live.stop_sources()
        except JavaError as error:
            LOG.warning("the sources of a drained query may have left connections open: %s", in_words(error))

    def thaw(self) -> None:
        """Let the query read on from where it was; it never stopped. Of one that was stopped meanwhile the sources are closed."""
        with self.live.progress_lock():
            self.live.put_sources(self._taken)
        if not self.live.active:
            give_up = monotonic() + _END_SECONDS
            while self.live.thread_alive and monotonic() < give_up:
                time.sleep(_POLL_SECONDS)
            self.stop_sources()  # a thread that still has to end finds them again, and closes them itself


def freeze(live: LiveQuery, keep_waiting: Callable[[], None]) -> FrozenQuery:
    """Take the sources away; the batch in flight, if any, still commits.

    Parameters
    ----------
    live
        The running query.
    keep_waiting
        Called while waiting; raises to give up.

    Raises
    ------
    QueryEndedError
        The query failed before it had sources.
    """
    # Before its first plan the query has no sources yet and would overwrite what is set here.
    with wait_until_initialized(live, keep_waiting):
        return FrozenQuery(live, live.take_sources(), live.watermark_ms)


@contextmanager
def wait_until_initialized(live: LiveQuery, keep_waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the query's lock at a time when the query has sources.

    Raises
    ------
    QueryEndedError
        The query failed before it had sources.
    """
    while True:
        with live.progress_lock(keep_waiting):
            if live.initialized:
                yield
                return
        if not live.thread_alive:
            raise QueryEndedError(live.error or "the query ended")
        keep_waiting()
        time.sleep(_POLL_SECONDS)


@contextmanager
def looked_at(
    live: LiveQuery, checkpoint: Checkpoint, keep_waiting: Callable[[], None] | None = None, committed: int | None = None
) -> Iterator[Logs]:
    """Hold the query's lock, knowing how its logs stand.

    They are listed before, where no batch is known to be ``committed``: under the lock a listing of an object store would hold the query
    up.
    """
    planned = checkpoint.newest_offsets if committed is None else committed
    with live.progress_lock(keep_waiting):
        # A query that plans batch after batch hands the lock over when it has committed one: what was listed before is out of date.
        newest = newest_planned(checkpoint, planned)
        if newest == committed is not None and not checkpoint.files.is_file(checkpoint.name(f"offsets/{committed}")):
            newest = checkpoint.newest_offsets  # those after it may have been removed as well, as too old
        yield Logs(newest, newest in (None, committed) or checkpoint.files.is_file(checkpoint.name(f"commits/{newest}")))


def newest_planned(checkpoint: Checkpoint, known: int | None) -> int | None:
    """Return the newest planned batch where a listing knew of one a moment ago: a look at the next one, not another listing."""
    while checkpoint.files.is_file(checkpoint.name(f"offsets/{0 if known is None else known + 1}")):
        known = 0 if known is None else known + 1
    return known


def wait_until_settled(live: LiveQuery, checkpoint: Checkpoint, keep_waiting: Callable[[], None]) -> int | None:
    """Wait until every planned batch is committed, and return the newest; None where there was never one.

    Raises
    ------
    QueryEndedError
        The query ended, for example because its batch failed.
    """
    while True:
        with looked_at(live, checkpoint, keep_waiting) as logs:
            if logs.settled:
                return logs.newest
        if not live.thread_alive:
            raise QueryEndedError(live.error or "the query ended")
        keep_waiting()
        time.sleep(_POLL_SECONDS)


def terminate(live: LiveQuery, checkpoint: Checkpoint, committed: int | None = None) -> int | None:
    """End the query's thread between two batches, of which one may be known to be ``committed``.

    Returns the newest batch where every planned one is committed, None where that is not known.

    A query with processing-time timers plans batch after batch even without sources; after a while it is ended wherever it is between
    planning and running, which leaves a planned batch that `settle` executes. A batch that runs is always waited for: cancelling it
    may make a foreachBatch that swallows exceptions commit half of it.
    """
    give_up, newest = monotonic() + _BOUNDARY_SECONDS, None
    while live.thread_alive:
        with looked_at(live, checkpoint, committed=committed) as logs:
            if logs.settled or monotonic() > give_up:
                live.terminate()
                newest = logs.newest if logs.settled else None
                break
        time.sleep(_POLL_SECONDS)
    while live.thread_alive:
        if not live.trigger_active:
            live.interrupt()
        time.sleep(_POLL_SECONDS / 5)
    # One that waited for the lock to plan a batch did that when it was let go, and Spark 3.5 runs such a batch to its commit (measured).
    return newest if newest is None or live.last_batch_id <= newest else None
