"""Read on to where the sources' data ends now, and no further: what comes later is not waited for."""

from __future__ import annotations

import time
from collections.abc import Callable

from spark_drain_agent.checkpoint import Checkpoint
from spark_drain_agent.spark_internals import LiveQuery, SparkInternals
from spark_drain_agent.spark_internals.sources import SourceGoal, goal_of, mute_sources
from spark_drain_agent.steps.freeze import QueryEndedError, wait_until_initialized

__all__ = ["CatchUp", "MuteSourceError"]

_POLL_SECONDS = 0.2


class MuteSourceError(Exception):
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
    MuteSourceError
        The query could not know when it has caught up.
    """

    def __init__(self, internals: SparkInternals, live: LiveQuery, checkpoint: Checkpoint, keep_waiting: Callable[[], None]) -> None:
        self._live, self._checkpoint, self._keep_waiting = live, checkpoint, keep_waiting
        self._goals = self._goals_now(internals)

    def _goals_now(self, internals: SparkInternals) -> list[SourceGoal]:
        while True:
            with wait_until_initialized(self._live, self._keep_waiting):
                streams, mute = self._live.streams, mute_sources(self._live)
                if mute:
                    raise MuteSourceError(", ".join(mute))
                planned = self._offsets(self._checkpoint.newest_offsets, len(streams))
                goals = [goal_of(internals, source, offset) for source, offset in zip(streams, planned, strict=True)]
            found = [goal for goal in goals if goal is not None]
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
        with self._live.progress_lock():
            planned = self._offsets(self._checkpoint.newest_offsets, len(self._goals))
            committed = self._offsets(self._checkpoint.newest_commit, len(self._goals))
            return all(goal.reached(*offsets) for goal, *offsets in zip(self._goals, planned, committed, strict=True))

    def _offsets(self, batch_id: int | None, sources: int) -> list[str | None]:
        if batch_id is None:
            return [None] * sources
        found = self._checkpoint.offsets(batch_id).offsets
        return [None if offset == "-" else offset for offset in found]
