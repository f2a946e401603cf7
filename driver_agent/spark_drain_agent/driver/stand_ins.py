"""What ``start()`` returns in the place of queries that a drain keeps from starting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Protocol

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

from spark_drain_agent.clock import monotonic
from spark_drain_agent.drain.run import Drain
from spark_drain_agent.driver.held_bounded_query import HeldBoundedQuery
from spark_drain_agent.driver.held_query import HeldQuery
from spark_drain_agent.gate import Gate, Phase
from spark_drain_agent.milestones import LOG
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.errors import JavaError

__all__ = ["StandIns"]

_LOOK_SECONDS = 0.5
_LEFT = (
    "{} was not started, and has read nothing: a drain has ended the application's queries, and what came since is read when the next "
    "version, or this one again, is started (an application that goes on after a drain is drained with afterDrain Keep)"
)


class _Host(Protocol):
    gate: Gate

    @property
    def drain(self) -> Drain | None: ...


class StandIns:
    """The stand-ins of an application: those that wait, and those whose queries are to be started.

    Parameters
    ----------
    host
        The agent.
    over
        Whether a query ends although the driver is held, given whether the application has stopped it.
    forget_flush
        Called before one is started: lets ``awaitAnyTermination()`` of a session wait on after a flush batch.
    """

    def __init__(self, host: _Host, over: Callable[[bool], bool], forget_flush: Callable[[StreamingQueryManager], None]) -> None:
        self._host, self._over, self._forget_flush = host, over, forget_flush
        self._lock = threading.RLock()  # a signal handler may look while its own thread does; Spark is not asked under it
        self._known: dict[str, tuple[TrackedQuery, HeldQuery]] = {}

    def put_off(self, tracked: TrackedQuery, start: Callable[[], StreamingQuery] | None) -> HeldQuery:
        """Return what ``start()`` returns in the place of a query that is kept from starting.

        Parameters
        ----------
        tracked
            The query.
        start
            Starts it once the driver is let go; None where the application does that.
        """
        drain = self._host.drain
        same = drain.query_id_at(tracked.location) if drain is not None and tracked.location is not None else None
        same = same or tracked.noted_id()

        def failure() -> StreamingQueryException | None:
            return drain.given_up.exception() if drain is not None and drain.given_up is not None else None

        def over(stopped: bool) -> bool:
            return self._over(stopped) or (made.awaited_by_flush and drain is not None and drain.abandoned)

        def begin(start: Callable[[], StreamingQuery]) -> StreamingQuery:
            if drain is not None and drain.ends_application:
                raise StreamingQueryException(_LEFT.format(tracked.label))
            self._forget_flush(tracked.internals.session.streams)
            try:
                return start()
            except Exception as error:
                if not tracked.internals.stopped:
                    raise
                raise StreamingQueryException(f"{tracked.label} was not started: Spark was stopped meanwhile") from error

        name, gate = tracked.captured.query_name, self._host.gate
        if start is not None:
            made: HeldQuery = HeldBoundedQuery(name, gate, over, same, failure, begin=partial(begin, start))
            then = "it is started then, if the application goes on"
        else:
            made = HeldQuery(name, gate, over, same, failure)
            then = "it ends then, and has to be started again"
        LOG.warning("%s is kept from starting until the drain's request is removed; %s", tracked.label, then)
        for earlier, held in self._unstarted():
            if held.is_due and tracked.location is not None and earlier.location == tracked.location:
                held.withdraw()  # a start stops the query that runs on its checkpoint
        self._add(tracked, made)
        self.begin_what_is_due()  # where the drain has let the driver go since
        return made

    def give_up(self, tracked: TrackedQuery) -> HeldQuery:
        """Return what ``start()`` returns where a signal has told the program to end while it waited: a query that has ended.

        Raises
        ------
        StreamingQueryException
            It is bounded: when it ends, everything is taken to be read.
        """
        if tracked.bounded:
            raise StreamingQueryException(f"{tracked.label} was not started: a signal came while its start waited")
        LOG.warning("%s was not started: a signal came while its start waited", tracked.label)
        return self._add(tracked, HeldQuery(tracked.captured.query_name, self._host.gate, lambda _: True))

    def begin_what_is_due(self, patience: float = 0.0) -> None:
        """Start the bounded queries that a drain has put off, where it has let the driver go; the start of one may wait for long.

        Parameters
        ----------
        patience
            How many seconds the calling thread may wait where the system has no more threads: Spark calls back in one of its own in each of
            these starts, and Py4J calls the application back no more once it was refused one (`py4j.java_gateway.CallbackServer.run`).
        """
        until = monotonic() + patience
        for _, held in self._unstarted():
            while self._host.gate.phase is not Phase.HELD and held.is_due:
                try:
                    threading.Thread(target=held.start_if_due, name="spark-drain-start", daemon=True).start()
                except RuntimeError:
                    if monotonic() < until:
                        time.sleep(_LOOK_SECONDS)
                        continue
                    held.start_if_due()
                break

    def _add(self, tracked: TrackedQuery, held: HeldQuery) -> HeldQuery:
        with self._lock:
            self._known[held.id] = (tracked, held)
        return held

    def _unstarted(self) -> list[tuple[TrackedQuery, HeldQuery]]:
        with self._lock:
            return [(tracked, held) for tracked, held in self._known.values() if not held.is_started]

    def of(self, streams: StreamingQueryManager) -> list[HeldQuery]:
        """Return those of a session in whose place Spark has started nothing."""
        return [held for tracked, held in self._unstarted() if tracked.belongs_to(streams)]

    def being_started(self, streams: StreamingQueryManager) -> set[str]:
        """Return the ids of the queries of a session that Spark has already, although the start of their stand-ins is under way."""
        found: set[str] = set()
        for tracked, held in self._unstarted():
            if held.is_pending and not held.is_due and tracked.belongs_to(streams):
                with suppress(*JavaError):  # Spark was stopped
                    found.update(query.id for query in tracked.internals.started_like(tracked.captured, tracked.location))
        return found

    @contextmanager
    def giving_way(self, to: TrackedQuery) -> Iterator[None]:
        """Let those that are in the place of a query which the application starts itself be started only where it is not."""
        with ExitStack() as ways:
            for tracked, held in self._unstarted():
                if held.is_pending and _takes_the_place_of(to, tracked):
                    ways.enter_context(held.giving_way())
            yield

    def forget_after_start(self, started: TrackedQuery) -> None:
        """Take note that the application starts queries again, and which one it has started."""
        in_its_place = [held for tracked, held in self._unstarted() if _takes_the_place_of(started, tracked)]
        for held in in_its_place:
            if held.is_due:
                held.withdraw()  # it is not to be started once more, which would stop this one
        with self._lock:
            kept = [held for _, held in self._known.values() if held.waits or held.is_pending or held.has_failed]
            kept = [held for held in kept if not (held.has_failed and held in in_its_place)]
            self._known = {key: item for key, item in self._known.items() if item[1] in kept}

    def failure(self, streams: StreamingQueryManager) -> StreamingQueryException | None:
        """Return what the start of one of a session has failed with."""
        return next((held.exception() for held in self.of(streams) if held.has_failed), None)

    def forget_failed(self, streams: StreamingQueryManager) -> None:
        """Take note that the application does not want to be told any more of those of a session that have failed."""
        told = [held for held in self.of(streams) if held.exception() is not None]
        with self._lock:
            self._known = {key: item for key, item in self._known.items() if item[1] not in told}


def _takes_the_place_of(started: TrackedQuery, tracked: TrackedQuery) -> bool:
    """Return whether a query that was put off is the one that the application has started."""
    if started.location is not None or tracked.location is not None:
        return tracked.location == started.location
    same_name = tracked.captured.query_name != "" and tracked.captured.query_name == started.captured.query_name
    return same_name and tracked.belongs_to(started.internals.session.streams)
