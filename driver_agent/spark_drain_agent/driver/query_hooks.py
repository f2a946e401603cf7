"""Public PySpark methods of running queries that the agent stands behind, so that a query which a drain ends seems to run on.

A drain that is still deciding ends nothing, so until it holds, and for every query that it is not about, each of them does what it always
does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager

from spark_drain_agent.agent_thread import as_agent, in_callback, is_agent
from spark_drain_agent.clock import monotonic
from spark_drain_agent.driver.agent import LET_DECIDE_SECONDS, Agent
from spark_drain_agent.gate import Phase
from spark_drain_agent.spark_internals.errors import answered

__all__ = ["hook_queries"]

_SLICE_SECONDS = 0.5
_SHORTEST_SECONDS = 0.001
"""Java counts milliseconds: less is 0 to it."""
_LONGEST_SECONDS = 2**63 / 1000
"""That Java takes, as milliseconds."""
Current = Callable[[], Agent | None]


def hook_queries(current: Current) -> None:
    """Hook the classes of running queries and their manager.

    Parameters
    ----------
    current
        Returns the agent, or None while there is none.
    """

    def asked() -> Agent | None:
        return None if is_agent() else current()

    _hook_wait_for_one(asked)
    _hook_wait_for_any(asked)
    _hook_wait_for_data(asked)
    _hook_query(asked)
    _hook_manager(asked)


class _Slices:
    """The time that a wait has left, in pieces short enough to see a drain come and go."""

    def __init__(self, timeout: float | None) -> None:
        self._deadline = None if timeout is None else monotonic() + timeout
        self._first = True

    def of(self, seconds: float) -> float:
        """Return so many seconds, or what is left if that is less."""
        return seconds if self._deadline is None else max(0.0, min(seconds, self._deadline - monotonic()))

    def more(self) -> bool:
        """Return whether there is time for another wait; `next` gives it then, however long this thread is kept from asking."""
        self._first = self.of(_SLICE_SECONDS) > _SHORTEST_SECONDS
        return self._first

    def next(self) -> float:
        """Return how many seconds to wait at most; 0 or less when time is up, but not before the first look."""
        left = _SLICE_SECONDS if self._deadline is None else min(_SLICE_SECONDS, self._deadline - monotonic())
        first, self._first = self._first, False
        return max(left, _SHORTEST_SECONDS) if first else left


def _is_refused(timeout: float | None, shortest: float) -> bool:
    """Return whether Spark refuses this timeout."""
    return timeout is not None and not (isinstance(timeout, (int, float)) and shortest <= timeout < _LONGEST_SECONDS)


def _raise(failure: StreamingQueryException | None) -> None:
    if failure is not None:
        raise failure


def _hook_wait_for_one(asked: Current) -> None:
    wait = StreamingQuery.awaitTermination

    @functools.wraps(wait)
    def hooked(self: StreamingQuery, timeout: float | None = None) -> bool | None:
        agent = asked()
        if agent is None or in_callback() or _is_refused(timeout, _SHORTEST_SECONDS):  # a drain may wait for this very function
            return wait(self, timeout)  # type: ignore[arg-type]
        slices = _Slices(timeout)
        with agent.gate.user_waits():
            while (remaining := slices.next()) > 0:
                if agent.held.shields(self):
                    agent.wait_while_held(remaining)
                    continue
                drained = agent.held.was_drained(self)
                try:
                    ended = drained or bool(wait(self, max(remaining, _SHORTEST_SECONDS)))  # type: ignore[arg-type]
                except Exception as error:
                    if not answered(error):
                        raise  # what a signal handler has raised
                    if agent.held.shields(self) or agent.held.was_drained(self):
                        continue  # its flush failed, and the drain makes that good
                    if isinstance(error, StreamingQueryException) and agent.held.is_ending(self) and slices.more():
                        continue
                    raise
                if ended and not drained and agent.held.is_ending(self) and slices.more():
                    continue
                if ended and not agent.held.shields(self):
                    if agent.held.may_flush(self):
                        agent.let_decide(slices.of(LET_DECIDE_SECONDS))
                        if agent.held.shields(self):
                            continue  # the drain flushes it
                    _raise(agent.held.failure(self))
                    return None if timeout is None else True
        return False

    StreamingQuery.awaitTermination = hooked  # type: ignore[method-assign]


def _hook_wait_for_any(asked: Current) -> None:
    wait = StreamingQueryManager.awaitAnyTermination

    @functools.wraps(wait)
    def hooked(self: StreamingQueryManager, timeout: float | None = None) -> bool | None:
        agent = asked()
        if agent is None or in_callback() or _is_refused(timeout, 0):  # a drain may wait for this very function
            return wait(self, timeout)  # type: ignore[arg-type]
        slices = _Slices(timeout)
        with agent.gate.user_waits(for_any=True):
            while (remaining := slices.next()) > 0:
                if _any_ended(agent, self, lambda remaining=remaining: bool(wait(self, max(remaining, _SHORTEST_SECONDS))), remaining):  # type: ignore[misc]
                    if agent.held.may_flush_ended(self):
                        agent.let_decide(slices.of(LET_DECIDE_SECONDS))
                        if agent.gate.phase is Phase.HELD:
                            continue  # the drain flushes it
                    return None if timeout is None else True
        return False

    StreamingQueryManager.awaitAnyTermination = hooked  # type: ignore[method-assign]


def _any_ended(agent: Agent, streams: StreamingQueryManager, wait: Callable[[], bool], seconds: float) -> bool:
    """Return whether a query has ended, other than by a drain, or raise its exception; wait for one a short time."""
    turns = agent.gate.turns
    if agent.gate.phase is Phase.HELD:
        _raise(agent.held.stand_ins.failure(streams))
        if _ended_beside(agent, streams) or agent.held.any_let_end(streams):
            return agent.gate.turns == turns  # else what the drain has put off may be due
        agent.wait_while_held(seconds)
        return False
    agent.held.forget_flush_before_start(streams)
    if agent.held.spark_may_forget(streams) and _ended_beside(agent, streams):
        return agent.gate.turns == turns
    _raise(agent.held.any_failure(streams))
    try:
        ended = wait()
    except Exception as error:
        if answered(error) and agent.gate.turns != turns:
            return False  # a drain may have ended it: looked at again in the new phase
        if answered(error) and agent.held.only_drained_ended(streams):
            return True  # its flush failed, and the drain has made that good
        raise
    over = ended or agent.held.nothing_will_end(streams)
    _raise(agent.held.any_failure(streams))  # the start of what was put off may have failed meanwhile
    return over and agent.gate.turns == turns


def _ended_beside(agent: Agent, streams: StreamingQueryManager) -> bool:
    """Return whether a query has ended that no drain ends, or raise its exception; Spark would name those that a drain ends too."""
    ended = agent.held.ended_beside(streams)
    for query in reversed(ended):  # Spark tells the last failure
        with as_agent():
            query.awaitTermination(_SHORTEST_SECONDS)  # type: ignore[arg-type]  # raises what it failed with
    return bool(ended)


def _hook_wait_for_data(asked: Current) -> None:
    process = StreamingQuery.processAllAvailable

    @functools.wraps(process)
    def hooked(self: StreamingQuery) -> None:
        agent = asked()
        if agent is None:
            process(self)
            return
        with agent.gate.user_waits():
            while not _processed(agent, self, lambda: process(self)):
                if in_callback():
                    return  # a drain may wait for this very function
                agent.wait_while_held(_SLICE_SECONDS)
                agent.gate.wait_while(Phase.DECIDING, _SLICE_SECONDS)

    StreamingQuery.processAllAvailable = hooked  # type: ignore[method-assign]


def _processed(agent: Agent, query: StreamingQuery, process: Callable[[], None]) -> bool:
    """Return whether everything was processed: a query whose sources a drain has frozen says so too soon.

    The next version reads what comes after a drain, so a program that was told to end has nothing to wait for.
    """
    if agent.held.was_drained(query):
        if agent.held.shields(query) and not agent.told_to_end:
            return False
        _raise(agent.held.failure(query))
        return True
    turns = agent.gate.turns
    try:
        process()
    except Exception as error:
        if answered(error) and agent.held.was_drained(query):
            return False  # its flush failed, and the drain makes that good
        raise
    return agent.told_to_end or (agent.gate.turns == turns and not agent.held.freezes(query))


def _hook_query(asked: Current) -> None:
    is_active, stop, exception = StreamingQuery.isActive.fget, StreamingQuery.stop, StreamingQuery.exception  # type: ignore[attr-defined]

    def hooked_is_active(self: StreamingQuery) -> bool:
        agent = asked()
        if agent is not None and agent.held.shields(self) and not in_callback():
            return True  # a main loop that polls it would otherwise end, or start the query again
        return bool(is_active(self))

    @functools.wraps(stop)
    def hooked_stop(self: StreamingQuery) -> None:
        agent = asked()
        if agent is not None and agent.held.shields(self):
            agent.held.stopped(self)
            return  # the drain ends it, between two batches
        stop(self)
        if agent is not None:
            agent.let_go()

    @functools.wraps(exception)
    def hooked_exception(self: StreamingQuery) -> StreamingQueryException | None:
        agent = asked()
        if agent is not None and agent.held.was_drained(self):
            return agent.held.failure(self)  # a flush that failed is no failure where the drain has made it good
        return exception(self)

    StreamingQuery.isActive = property(hooked_is_active, doc=StreamingQuery.isActive.__doc__)  # type: ignore[method-assign, assignment]
    StreamingQuery.stop = hooked_stop  # type: ignore[method-assign]
    StreamingQuery.exception = hooked_exception  # type: ignore[method-assign]


def _hook_manager(asked: Current) -> None:
    active, get, reset = StreamingQueryManager.active.fget, StreamingQueryManager.get, StreamingQueryManager.resetTerminated  # type: ignore[attr-defined]

    def hooked_active(self: StreamingQueryManager) -> list[StreamingQuery]:
        agent = asked()
        held = agent.held.of(self) if agent is not None else {}
        if agent is None or not held:
            return list(active(self))
        listed = active(self)
        hidden = {*held, *agent.held.stand_ins.being_started(self)}  # asked after Spark, which may have listed one just now
        running = [query for query in listed if query.id not in hidden]
        begun = {query.id for query in running}
        return running + [query for query in held.values() if query.id not in begun]  # its id is Spark's once it has begun

    @functools.wraps(get)
    def hooked_get(self: StreamingQueryManager, id: str) -> StreamingQuery | None:
        agent = asked()
        held = agent.held.of(self).get(id) if agent is not None else None
        return held if held is not None else get(self, id)

    @functools.wraps(reset)
    def hooked_reset(self: StreamingQueryManager) -> None:
        agent = asked()
        if agent is not None:
            agent.held.forget_ended(self)
        reset(self)

    StreamingQueryManager.active = property(hooked_active, doc=StreamingQueryManager.active.__doc__)  # type: ignore[method-assign, assignment]
    StreamingQueryManager.get = hooked_get  # type: ignore[method-assign]
    StreamingQueryManager.resetTerminated = hooked_reset  # type: ignore[method-assign]
