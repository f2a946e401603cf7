"""Read on to where the sources' data ends now, and no further: what comes later is not waited for."""

from __future__ import annotations

import time
from collections.abc import Callable

from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.queries.freeze import QueryEndedError, newest_planned, wait_until_initialized
from spark_drain_agent.spark_internals.live_query import LiveQuery
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.sources import SourceGoal, goal_of, sources_without_end

__all__ = ["CatchUp", "UnknownEndError"]

_POLL_SECONDS = 0.2


class UnknownEndError(Exception):
    """A source cannot say how far its data goes; the message has its description and class."""


class CatchUp:
    """One running query on its way to where its sources end when this is made.

    Parameters
    ----------
    internals
        Access to Spark.
    live
        The running query.
    checkpoint
        Its logs.
    keep_waiting
        Called while waiting; raises to give up.

    Raises
    ------
    QueryEndedError
        The query ended.
    UnknownEndError
        The query could not know when it has caught up.
    """

    def __init__(self, internals: SparkInternals, live: LiveQuery, checkpoint: Checkpoint, keep_waiting: Callable[[], None]) -> None:
        self._live, self._checkpoint, self._keep_waiting = live, checkpoint, keep_waiting
        self._goals = self._goals_now(internals)

    def _goals_now(self, internals: SparkInternals) -> dict[str, SourceGoal]:
        while True:
            newest = self._checkpoint.newest_offsets
            with wait_until_initialized(self._live, self._keep_waiting):
                streams, unknown = self._live.streams_by_id, sources_without_end(self._live)
                if unknown:
                    raise UnknownEndError(", ".join(unknown))
                planned = self._offsets(newest_planned(self._checkpoint, newest))
                goals = {source: goal_of(internals, stream, planned.get(source)) for source, stream in streams.items()}
            found = {source: goal for source, goal in goals.items() if goal is not None}
            if len(found) == len(goals):
                return found
            self._pause()

    def wait(self) -> None:
        """Wait until the query has read and committed so much; it reads in batches of its own size."""
        while not self._reached():
            self._pause()

    def _pause(self) -> None:
        if not self._live.thread_alive:
            raise QueryEndedError(self._live.error or "the query ended")
        self._keep_waiting()
        time.sleep(_POLL_SECONDS)

    def _reached(self) -> bool:
        newest = self._checkpoint.newest_offsets  # listed before: under the lock a listing would hold the query up
        committed = self._offsets(self._checkpoint.newest_commit)
        with self._live.progress_lock(self._keep_waiting):
            planned = self._offsets(newest_planned(self._checkpoint, newest))
            return all(goal.reached(planned.get(source), committed.get(source)) for source, goal in self._goals.items())

    def _offsets(self, batch_id: int | None) -> dict[str, str]:
        """Return what the offset log has of a batch; a source is not in it before it has read anything."""
        found = {} if batch_id is None else self._checkpoint.offsets(batch_id).by_source
        return {source: offset for source, offset in found.items() if offset != "-"}
