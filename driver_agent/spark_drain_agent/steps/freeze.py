"""Stop reading without stopping the query, and end it at a batch boundary."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from spark_drain_agent.checkpoint import Checkpoint
from spark_drain_agent.spark_internals import LiveQuery

__all__ = ["FrozenQuery", "QueryEndedError", "freeze", "terminate", "wait_until_initialized", "wait_until_settled"]

_POLL_SECONDS = 0.05
_BOUNDARY_SECONDS = 30.0


class QueryEndedError(Exception):
    """The query's thread ended while it was being drained; the message has its exception."""


class FrozenQuery:
    """A query whose sources were taken away; `thaw` gives them back.

    Parameters
    ----------
    live
        The running query.
    sources
        What `LiveQuery.take_sources` returned.
    """

    def __init__(self, live: LiveQuery, sources: Any) -> None:
        self.live = live
        self._sources = sources

    def thaw(self) -> None:
        """Let the query read on from where it was; it never stopped."""
        with self.live.progress_lock():
            self.live.put_sources(self._sources)


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
        return FrozenQuery(live, live.take_sources())


@contextmanager
def wait_until_initialized(live: LiveQuery, keep_waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the query's lock at a time when the query has sources.

    Raises
    ------
    QueryEndedError
        The query failed before it had sources.
    """
    while True:
        with live.progress_lock():
            if live.initialized:
                yield
                return
        if not live.thread_alive:
            raise QueryEndedError(live.error or "the query ended")
        keep_waiting()
        time.sleep(_POLL_SECONDS)


def wait_until_settled(live: LiveQuery, checkpoint: Checkpoint, keep_waiting: Callable[[], None]) -> None:
    """Wait until every planned batch is committed.

    Raises
    ------
    QueryEndedError
        The query ended, for example because its batch failed.
    """
    while True:
        with live.progress_lock():
            if checkpoint.settled:
                return
        if not live.thread_alive:
            raise QueryEndedError(live.error or "the query ended")
        keep_waiting()
        time.sleep(_POLL_SECONDS)


def terminate(live: LiveQuery, checkpoint: Checkpoint) -> None:
    """End the query's thread between two batches.

    A query with processing-time timers plans batch after batch even without sources; after a while it is ended wherever it is between
    planning and running, which leaves a planned batch that `settle` executes. A batch that runs is always waited for: cancelling it
    may make a foreachBatch that swallows exceptions commit half of it.
    """
    give_up = time.monotonic() + _BOUNDARY_SECONDS
    while live.thread_alive:
        with live.progress_lock():
            if checkpoint.settled or time.monotonic() > give_up:
                live.terminate()
                break
        time.sleep(_POLL_SECONDS)
    while live.thread_alive:
        if not live.trigger_active:
            live.interrupt()
        time.sleep(_POLL_SECONDS / 5)
