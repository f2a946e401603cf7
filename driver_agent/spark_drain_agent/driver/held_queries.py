"""What the application sees of queries that a drain holds: they seem to run until the driver may go."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Protocol

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.drain.ended import GivenUp
from spark_drain_agent.drain.run import Drain
from spark_drain_agent.driver.stand_ins import StandIns
from spark_drain_agent.gate import Gate, Phase
from spark_drain_agent.queries.registry import QueryRegistry
from spark_drain_agent.queries.standing import Standing
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["HeldQueries"]


class _Host(Protocol):
    gate: Gate
    internals: SparkInternals
    registry: QueryRegistry

    @property
    def drain(self) -> Drain | None: ...
    @property
    def told_to_end(self) -> bool: ...


class HeldQueries:
    """The queries that the drain under way owns, and the stand-ins for those that it keeps from starting.

    Parameters
    ----------
    host
        The agent.
    """

    def __init__(self, host: _Host) -> None:
        self._host = host
        self.stand_ins = StandIns(host, self._over, self.forget_flush)
        self._drained_runs: set[str] = set()
        self._kept_open: set[str] = set()
        self._stopped_runs: set[str] = set()
        self._bounded_runs: set[str] = set()
        self._forgotten_by_spark: set[int] = set()
        self._given_up: dict[str, tuple[TrackedQuery, GivenUp]] = {}

    def owned(self) -> tuple[TrackedQuery, ...]:
        """Return the queries that the drain under way ends or has ended."""
        drain = self._host.drain
        return () if drain is None else drain.owned()

    def owns(self, query: StreamingQuery) -> bool:
        """Return whether the drain under way is about this query."""
        return self._owned(query) is not None

    def _owned(self, query: StreamingQuery) -> TrackedQuery | None:
        """Return what the drain under way knows of a query; the JVM is asked only for an object that is not the one of its start.

        A signal handler may interrupt a thread that waits, and Py4J takes no other call in the middle of one.
        """
        owned = self.owned()
        found = next((item for item in owned if item.query is query), None)
        return found or next((item for item in owned if item.query_id == query.id), None)

    def shields(self, query: StreamingQuery) -> bool:
        """Return whether the query seems to run although a drain may have ended it."""
        if self._host.gate.phase is not Phase.HELD or (owned := self._owned(query)) is None:
            return False
        return not self._over(self._may_end(owned.run_id if owned.query is query else query.runId))

    def _may_end(self, run_id: str) -> bool:
        """Return whether a query has ended also without the drain: the application has stopped it, or it ends when it has read.

        The JVM is not asked: a signal handler may want to know.
        """
        return run_id in self._stopped_runs or run_id in self._bounded_runs

    def _owned_in(self, streams: StreamingQueryManager, *, let_end: bool) -> list[TrackedQuery]:
        """Return the queries of a session that the drain under way is about: those that seem to run, or those that it has let end."""
        owned = [item for item in self.owned() if item.query is not None and self._ends(self._may_end(item.run_id)) is let_end]
        return [item for item in owned if item.belongs_to(streams)]

    def stopped(self, query: StreamingQuery) -> None:
        """Take note that the application has stopped a query that the drain under way ends."""
        self._stopped_runs.add(query.runId)

    def was_drained(self, query: StreamingQuery) -> bool:
        """Return whether a drain past its point of no return has had this run of a query to end, whatever became of its flush batch."""
        return bool(self._drained_runs) and query.runId in self._drained_runs

    def freezes(self, query: StreamingQuery) -> bool:
        """Return whether a drain that is not yet decided may have taken the query's sources away."""
        return self._host.gate.phase is Phase.DECIDING and self.owns(query)

    def may_flush(self, query: StreamingQuery) -> bool:
        """Return whether a drain that is not yet decided may go on with a query that has run to its end.

        One that the application has stopped is its own, and may be about to be started again.
        """
        owned = self._owned(query) if self._host.gate.phase is Phase.DECIDING else None
        return owned is not None and owned.standing() is Standing.FINISHED

    def may_flush_ended(self, streams: StreamingQueryManager) -> bool:
        """Return whether a drain that is not yet decided may go on with all queries of a session that have ended."""
        if self._host.gate.phase is not Phase.DECIDING:
            return False
        owned, ended = self.owned(), self._ended(streams)
        return bool(ended) and all(item in owned and item.standing() is Standing.FINISHED for item in ended)

    def ends(self, queries: Iterable[TrackedQuery], *, keeping_state: bool) -> None:
        """Take note of the queries that a drain ends from now on."""
        items = [item for item in queries if item.query is not None]
        runs = {item.run_id for item in items}
        self._bounded_runs |= {item.run_id for item in items if item.bounded}
        self._drained_runs |= runs
        if keeping_state:
            self._kept_open |= runs

    def give_up(self, queries: Iterable[TrackedQuery], given_up: GivenUp) -> None:
        """Take note that the drain of these queries was given up."""
        self._given_up = {**self._given_up, **{item.run_id: (item, given_up) for item in queries}}

    def failure(self, query: StreamingQuery) -> StreamingQueryException | None:
        """Return what the drain of a query failed with; None where it was not given up."""
        found = self._given_up.get(query.runId) if self._given_up else None
        return found[1].exception() if found is not None else None

    def any_failure(self, streams: StreamingQueryManager) -> StreamingQueryException | None:
        """Return what the drain of any query of a session failed with, since the application last asked to forget such."""
        found = (given_up for item, given_up in self._given_up.values() if not item.forgotten and item.belongs_to(streams))
        failures = (failure for held in self.stand_ins.of(streams) if (failure := held.exception()) is not None)
        return next(itertools.chain((given_up.exception() for given_up in found), failures), None)

    def ended(self, query: TrackedQuery) -> bool:
        """Return whether a drain has had this run of a query to end."""
        return query.run_id in self._drained_runs

    def kept_open(self, query: TrackedQuery) -> bool:
        """Return whether a drain has had this run of a query to end, and has left open what is in its state."""
        return query.run_id in self._kept_open

    def given_up(self, query: TrackedQuery) -> bool:
        """Return whether a drain has had this run of a query to end, and was given up before it had brought it to its end."""
        return query.run_id in self._given_up

    def made_good(self, query: TrackedQuery) -> bool:
        """Return whether a drain has brought this run of a query to its end, whatever its first flush batch failed with."""
        return self.ended(query) and not self.given_up(query)

    def _over(self, stopped: bool) -> bool:
        return self._host.internals.jvm_ended or self._ends(stopped)

    def _ends(self, stopped: bool) -> bool:
        """Return whether a query that was ``stopped``, or any when Spark was, has ended, as without a drain: where a signal has come."""
        return (stopped or self._host.internals.stop_returned) and self._host.told_to_end

    def of(self, streams: StreamingQueryManager) -> dict[str, StreamingQuery]:
        """Return by id the queries of a session that seem to run because a drain holds them."""
        while True:
            turns = self._host.gate.turns
            found = self._seem_to_run(streams)
            if self._host.gate.turns == turns:
                return found

    def _seem_to_run(self, streams: StreamingQueryManager) -> dict[str, StreamingQuery]:
        stand_ins = self.stand_ins.of(streams)
        if self._host.gate.phase is not Phase.HELD:
            return {held.id: held for held in stand_ins if held.is_pending}
        found: dict[str, StreamingQuery] = {
            item.query_id: item.query for item in self._owned_in(streams, let_end=False) if item.query is not None
        }
        found.update((held.id, held) for held in stand_ins if held.is_listed)
        return found

    def any_let_end(self, streams: StreamingQueryManager) -> bool:
        """Return whether a query of a session has ended for the application although a drain holds it, since it asked to forget such."""
        stopped = any(not item.forgotten for item in self._owned_in(streams, let_end=True))
        return stopped or any(held.is_let_end for held in self.stand_ins.of(streams))

    def ended_beside(self, streams: StreamingQueryManager) -> list[StreamingQuery]:
        """Return the queries of a session that have ended, but not by a drain, since the application last asked to forget such.

        In the order of their starts.
        """
        return [item.query for item in self._ended(streams) if item.query is not None and not self.is_ending(item.query)]

    def is_ending(self, query: StreamingQuery) -> bool:
        """Return whether a query that was stopped, or has failed, has not come to its end: at its time limit Spark lets a wait return."""
        try:
            return self._host.internals.is_in_jvm(query) and self._host.internals.live(query).thread_alive
        except JavaError:
            return False

    def _ended(self, streams: StreamingQueryManager) -> list[TrackedQuery]:
        known = (*self._host.registry.last_ended(), *self._host.registry.all())
        found = [item for item in known if item.ended and not item.forgotten and item.belongs_to(streams)]
        return [item for item in found if not self.ended(item)]

    def only_drained_ended(self, streams: StreamingQueryManager) -> bool:
        """Return whether every query of a session that has ended was ended by a drain."""
        return bool(self._drained_runs) and not self._ended(streams)

    def nothing_will_end(self, streams: StreamingQueryManager) -> bool:
        """Return whether a wait for any query's end would be endless, because a drain has kept the queries from starting."""
        return bool(self.stand_ins.of(streams)) and not streams.active

    def forget_ended(self, streams: StreamingQueryManager) -> None:
        """Take note that the application does not want to be told any more of queries that have ended.

        One that was stopped in the middle of a batch has its end before it.
        """
        given_up = [item for item, _ in self._given_up.values() if item.belongs_to(streams)]
        ended = [item for item in self._ended(streams) if not self._will_end(item)]
        for item in (*ended, *given_up, *self._owned_in(streams, let_end=True)):
            item.forget()
        self.stand_ins.forget_failed(streams)
        self._forgotten_by_spark.discard(self._host.internals.manager_id(streams))

    def _will_end(self, item: TrackedQuery) -> bool:
        with as_agent():
            return item.query is not None and self.is_ending(item.query) and item.query.exception() is None

    def forget_flush(self, streams: StreamingQueryManager) -> None:
        """Let ``awaitAnyTermination()`` wait on after a flush batch, unless a query of the application has ended too."""
        if not self._ended(streams):
            with as_agent():
                streams.resetTerminated()
            if self._ended(streams):  # meanwhile: Spark may have forgotten it with the flush
                self._forgotten_by_spark.add(self._host.internals.manager_id(streams))

    def spark_may_forget(self, streams: StreamingQueryManager) -> bool:
        """Return whether Spark may not tell of a query of a session that has ended."""
        return bool(self._forgotten_by_spark) and self._host.internals.manager_id(streams) in self._forgotten_by_spark

    def forget_flush_before_start(self, streams: StreamingQueryManager) -> None:
        """Do the same where bounded queries are about to be started, of which none has ended then."""
        if any(held.is_pending for held in self.stand_ins.of(streams)):
            self.forget_flush(streams)

    def forget_drained(self) -> None:
        """Let ``awaitAnyTermination()`` wait on for the queries that run beside those that were drained, where none of them has ended."""
        running = [item for item in self._host.registry.all() if item.query is not None and not item.ended]
        for streams in {id(item.internals.session): item.internals.session.streams for item in running}.values():
            self.forget_flush(streams)
