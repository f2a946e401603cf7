"""The queries that the application started."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.queries.standing import Past, Standing, forgotten
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.errors import JavaError, UnsupportedSparkError
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["QueryRegistry"]

_MOST_EXPECTED = 20
_MOST_SESSIONS = 1000


class QueryRegistry:
    """The queries that matter to a drain, by the order of their start; safe to use from several threads.

    Parameters
    ----------
    internals
        Access to Spark, through a session that lasts as long as the application.
    starts_in_flight
        Returns the queries that are being started now.
    """

    def __init__(self, internals: SparkInternals, starts_in_flight: Callable[[], list[TrackedQuery]] = list) -> None:
        self._internals = internals
        self._starts_in_flight = starts_in_flight
        self._lock = threading.RLock()  # a signal handler may look while its own thread does
        self._tracked: list[TrackedQuery] = []
        self._expected: list[TrackedQuery] = []
        self._refused: dict[str, TrackedQuery] = {}
        self._last_ended: list[TrackedQuery] = []

    def add(self, tracked: TrackedQuery) -> None:
        """Remember a query; earlier ones that matter no more are forgotten."""
        with self._lock:
            self._tracked.append(tracked)
            self._refused.pop(tracked.key, None)
        self.prune()

    def refuse(self, tracked: TrackedQuery) -> None:
        """Remember a query that was not started, since a drain that was interrupted is in the middle of its checkpoint."""
        with self._lock:
            self._refused[tracked.key] = tracked

    def refused(self) -> tuple[TrackedQuery, ...]:
        """Return the queries that were refused, and have not been started since."""
        with self._lock:
            return tuple(self._refused.values())

    def expect(self, tracked: TrackedQuery, *, still_starting: bool) -> None:
        """Remember a query whose start has raised an exception, if it runs all the same.

        Parameters
        ----------
        tracked
            The query, still without a handle.
        still_starting
            Whether Spark may not be done with the start: something else, such as a signal handler, has raised the exception.
        """
        if still_starting:  # it is looked for later: this thread may be in the middle of a call into the JVM
            with self._lock:
                self._expected = [*self._expected, tracked][-_MOST_EXPECTED:]
        else:
            self._found(tracked)

    def _found(self, tracked: TrackedQuery) -> bool:
        """Look for the query among those that run; one that may be another start's as well is not taken."""
        try:
            found = tracked.internals.started_like(tracked.captured, tracked.location)  # first: what it finds is in flight, or known, next
            if not found or any(tracked.is_like(other) for other in self._starts_in_flight()):
                return tracked.query is not None
            with self._lock:
                others = list(self._tracked)
            known = {other.run_id for other in others}
            unknown = [query for query in found if str(query.runId) not in known]
        except (*JavaError, UnsupportedSparkError):  # such as a connection that is gone
            return False
        with self._lock:
            if len(unknown) == 1 and tracked.query is None:
                tracked.query = unknown[0]
                self._tracked.append(tracked)
        return tracked.query is not None

    def prune(self) -> None:
        """Forget what matters no more: an application may start queries for as long as it runs."""
        found = self.all()
        pasts = _pasts(found)  # asks Spark: not under the lock
        over = {id(item) for item, is_over in zip(found, forgotten(pasts), strict=True) if is_over}
        ended = [item.left(self._internals, with_digest=False) for item in found if id(item) in over and item.ended and not item.forgotten]
        with self._lock:
            self._tracked = [item for item in self._tracked if id(item) not in over]
            for item in ended:
                self._last_ended = _with_last_ended(self._last_ended, item)

    def let_go(self, is_open: Callable[[TrackedQuery], bool]) -> None:
        """Keep little of queries that were stopped or have failed; not while a drain may be about one of them.

        Their plans, their sessions and the data in both may be large. Of queries without name and checkpoint the plan tells whether a
        failed one was started again.

        Parameters
        ----------
        is_open
            Returns whether an earlier drain has left a query in its middle.
        """
        standings = [(tracked, tracked.standing()) for tracked in self.all()]
        over = [
            item for item, standing in standings if standing in (Standing.STOPPED, Standing.FAILED) and item.ended and not is_open(item)
        ]
        digests = _some_failed(standings)
        left = {id(item): item.left(self._internals, with_digest=digests and _nameless(item)) for item in over}
        with self._lock:
            self._tracked = [left.get(id(item), item) for item in self._tracked]

    def last_ended(self) -> list[TrackedQuery]:
        """Return of each session the query that matters no more and whose end ``awaitAnyTermination()`` still tells (Spark keeps one)."""
        with self._lock:
            self._last_ended = [item for item in self._last_ended if not item.forgotten]
            return list(self._last_ended)

    def runs_on(self, location: str | None) -> bool:
        """Return whether a query is running on a checkpoint location."""
        return any(item.location == location and item.query is not None and item.query.isActive for item in self.all())

    def was_stopped(self, location: str | None) -> bool:
        """Return whether the application has stopped the query on a checkpoint location, and not started it again."""
        there = [item for item in self.all() if location is not None and item.location == location]
        return bool(there) and there[-1].standing() is Standing.STOPPED

    def knows(self, tracked: TrackedQuery) -> bool:
        """Return whether a query was started before, on the same checkpoint or under the same name."""
        location, name = tracked.location, tracked.captured.query_name
        return any(
            (location is not None and item.location == location) or (bool(name) and item.captured.query_name == name) for item in self.all()
        )

    def running(self) -> list[StreamingQuery]:
        """Return the queries that run."""
        return [item.query for item in self.all() if item.query is not None and item.query.isActive]

    def all(self) -> list[TrackedQuery]:
        """Return every query that was not forgotten, also ended ones."""
        with self._lock:
            expected = list(self._expected)
        found = [tracked for tracked in expected if self._found(tracked)]
        with self._lock:
            self._expected = [tracked for tracked in self._expected if tracked not in found]
            return list(self._tracked)


def _with_last_ended(known: list[TrackedQuery], ended: TrackedQuery) -> list[TrackedQuery]:
    """Add an end as `StreamingQueryManager.notifyQueryTermination` does: the first one of a session stays unless a later one has failed."""
    same = next((item for item in known if item.manager == ended.manager), None)
    if same is not None and ended.standing() is not Standing.FAILED:
        return known
    return [*(item for item in known if item is not same), ended][-_MOST_SESSIONS:]


def _pasts(queries: list[TrackedQuery]) -> list[Past]:
    standings = [(tracked, tracked.standing()) for tracked in queries]
    digests = _some_failed(standings)
    return [_past(tracked, standing, tracked.fingerprint if digests and _nameless(tracked) else "") for tracked, standing in standings]


def _some_failed(standings: list[tuple[TrackedQuery, Standing]]) -> bool:
    """Return whether digests are worth their price: of those that have neither name nor checkpoint, one has failed."""
    return any(standing is Standing.FAILED and _nameless(tracked) for tracked, standing in standings)


def _nameless(tracked: TrackedQuery) -> bool:
    return tracked.location is None and not tracked.captured.query_name


def _past(tracked: TrackedQuery, standing: Standing, digest: str) -> Past:
    keeps_state = standing is not Standing.FINISHED or tracked.keeps_state
    return Past(standing, tracked.captured.query_name, tracked.location, keeps_state, digest, tracked.forgotten)
