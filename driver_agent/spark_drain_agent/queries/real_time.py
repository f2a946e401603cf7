"""A query in real-time mode, paused between two batches.

Such a query knows only at the end of a batch how far it has read, and begins the next one whether there is data or not: taking its
sources away would make it fail. Its thread takes the progress lock three times per round: to commit the batch, to wake those who wait
for a batch, and to plan the next one. Who holds the lock when it comes for the second time has the query exactly between two batches.
At its end a query takes it once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

from spark_drain_agent.queries.freeze import FrozenQuery, QueryEndedError
from spark_drain_agent.spark_internals.live_query import LiveQuery

__all__ = ["PausedQuery", "pause"]

_PLANNING, _COMMITTING, _BETWEEN, _ENDING = "constructNextBatch", "runBatch", "executeOneBatch", "runStream"
_POLL_SECONDS = 0.02


class PausedQuery(FrozenQuery):
    """A query that waits for its progress lock between two batches; the thread that paused it must be the one that lets it go.

    Parameters
    ----------
    live
        The running query.
    lock
        Lets the lock go when closed.
    """

    def __init__(self, live: LiveQuery, lock: ExitStack) -> None:
        super().__init__(live, None)
        self._lock = lock

    def thaw(self) -> None:
        """Let the query begin its next batch."""
        self._lock.close()

    def end(self) -> None:
        """Let the query's thread go on to its end: it begins no further batch."""
        self.live.terminate()
        self._lock.close()


def pause(live: LiveQuery, keep_waiting: Callable[[], None]) -> PausedQuery:
    """Wait for the end of the running batch and pause the query there.

    Parameters
    ----------
    live
        The running query.
    keep_waiting
        Called while waiting; raises to give up.

    Raises
    ------
    QueryEndedError
        The query ended.
    """
    while True:
        with ExitStack() as lock:
            lock.enter_context(live.progress_lock(keep_waiting))
            place = _wait_in_line(live, keep_waiting)
            if place == _BETWEEN and live.active:
                return PausedQuery(live, lock.pop_all())
        if place in (_ENDING, _BETWEEN):
            live.wait_until_ended(keep_waiting)
            raise QueryEndedError(live.error or "the query ended")
        # It commits or plans now, which takes longer than to get in line behind it; who comes too late waits for the next batch.


def _wait_in_line(live: LiveQuery, keep_waiting: Callable[[], None]) -> str:
    while not (found := live.waits_for_lock_in((_PLANNING, _COMMITTING, _BETWEEN, _ENDING))):
        if not live.thread_alive:
            raise QueryEndedError(live.error or "the query ended")
        keep_waiting()
        time.sleep(_POLL_SECONDS)
    return found
