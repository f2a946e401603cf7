"""Public PySpark methods that the agent stands behind: session creation, query start, waiting, stopping."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_drain_agent.agent import Agent
from spark_drain_agent.bypass import is_agent
from spark_drain_agent.hold import Phase
from spark_drain_agent.queries import HeldQuery
from spark_drain_agent.spark_internals import SparkInternals

__all__ = ["install"]

_SLICE_SECONDS = 0.5
_installed = False


def install(on_session: Callable[[SparkSession], Agent | None], current: Callable[[], Agent | None]) -> None:
    """Hook PySpark's classes once per process.

    Parameters
    ----------
    on_session
        Called with each new session.
    current
        Returns the agent, or None while there is none.
    """
    global _installed  # noqa: PLW0603  # the hooked classes are global, so is the fact that they are
    if _installed:
        return
    _installed = True
    _hook_session(on_session, current)
    _hook_start(on_session)
    _hook_waiting(current)
    _hook_query(current)


def _hook_session(on_session: Callable[[SparkSession], Agent | None], current: Callable[[], Agent | None]) -> None:
    construct = SparkSession.__init__

    @functools.wraps(construct)
    def hooked_init(self: SparkSession, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        if not is_agent():
            on_session(self)

    SparkSession.__init__ = hooked_init  # type: ignore[method-assign]
    for holder in (SparkSession, SparkContext):
        _hold_before(holder, "stop", current)


def _hold_before(holder: type, name: str, current: Callable[[], Agent | None]) -> None:
    stop = getattr(holder, name)

    @functools.wraps(stop)
    def held(self: Any) -> None:
        agent = current()
        if agent is not None and not is_agent():
            agent.hold_exit()
        stop(self)

    setattr(holder, name, held)


def _hook_start(on_session: Callable[[SparkSession], Agent | None]) -> None:
    """Attach here too: a session that was made out of the agent's sight may belong to another SparkContext than the agent."""
    start, to_table = DataStreamWriter.start, DataStreamWriter.toTable

    @functools.wraps(start)
    def hooked_start(self: DataStreamWriter, path: str | None = None, *args: Any, **kwargs: Any) -> StreamingQuery:
        agent = None if is_agent() else on_session(self._spark)
        if agent is None:
            return start(self, path, *args, **kwargs)
        _configure(self, *args, **kwargs)
        internals = SparkInternals(self._spark)
        return agent.start_query(internals, lambda: internals.capture(self, path=path), lambda: start(self, path))

    @functools.wraps(to_table)
    def hooked_to_table(self: DataStreamWriter, tableName: str, *args: Any, **kwargs: Any) -> StreamingQuery:  # noqa: N803
        agent = None if is_agent() else on_session(self._spark)
        if agent is None:
            return to_table(self, tableName, *args, **kwargs)
        _configure(self, *args, **kwargs)
        internals = SparkInternals(self._spark)
        return agent.start_query(internals, lambda: internals.capture(self, table=tableName), lambda: to_table(self, tableName))

    DataStreamWriter.start = hooked_start  # type: ignore[method-assign]
    DataStreamWriter.toTable = hooked_to_table  # type: ignore[method-assign]


def _configure(
    writer: DataStreamWriter,
    format: str | None = None,
    outputMode: str | None = None,  # noqa: N803  # pyspark's names
    partitionBy: Any = None,  # noqa: N803
    queryName: str | None = None,  # noqa: N803
    **options: Any,
) -> None:
    """Apply the arguments of start() to the writer before it is looked at, as start() itself would."""
    writer.options(**options)
    if outputMode is not None:
        writer.outputMode(outputMode)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    if format is not None:
        writer.format(format)
    if queryName is not None:
        writer.queryName(queryName)


def _hook_waiting(current: Callable[[], Agent | None]) -> None:
    _wait_through_drains(StreamingQuery, "awaitTermination", current, lambda _agent, _query: False)
    _wait_through_drains(StreamingQueryManager, "awaitAnyTermination", current, Agent.nothing_will_end)


def _wait_through_drains(holder: type, name: str, current: Callable[[], Agent | None], is_endless: Callable[[Agent, Any], bool]) -> None:
    """A drain ends queries: the user's wait must not return for that, or main would end and the driver with it."""
    wait = getattr(holder, name)

    @functools.wraps(wait)
    def hooked(self: Any, timeout: float | None = None) -> bool | None:
        agent = current()
        if agent is None or is_agent() or (timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0)):
            return wait(self, timeout)  # type: ignore[no-any-return]
        deadline = None if timeout is None else time.monotonic() + timeout
        failed_flushing = False
        with agent.gate.user_waits():
            while True:
                remaining = _SLICE_SECONDS if deadline is None else min(_SLICE_SECONDS, deadline - time.monotonic())
                if remaining <= 0:
                    return False
                try:
                    ended = wait(self, max(remaining, 0.001))
                except Exception:
                    # The query failed in its flush, and the drain has made that good: no reason for main to fail when it may go.
                    failed_flushing = failed_flushing or agent.gate.phase is Phase.HELD
                    if agent.gate.phase is Phase.OPEN and not failed_flushing:
                        raise
                    ended = True
                if agent.gate.phase is Phase.OPEN and (ended or is_endless(agent, self)):
                    return None if timeout is None else True
                if ended:
                    agent.gate.wait_while(agent.gate.phase, remaining)

    setattr(holder, name, hooked)


def _hook_query(current: Callable[[], Agent | None]) -> None:
    is_active, stop = StreamingQuery.isActive.fget, StreamingQuery.stop  # type: ignore[attr-defined]

    def hooked_is_active(self: StreamingQuery) -> bool:
        agent = current()
        if agent is not None and not is_agent() and agent.gate.phase is Phase.HELD and agent.owns(self):
            return True  # a main loop that polls it would otherwise end, or start the query again
        return bool(is_active(self))

    @functools.wraps(stop)
    def hooked_stop(self: StreamingQuery) -> None:
        agent = current()
        if agent is not None and not is_agent() and not isinstance(self, HeldQuery):
            agent.gate.wait_while(Phase.DECIDING)
            if agent.gate.phase is Phase.HELD and agent.owns(self):
                return  # the drain ends it, between two batches
        stop(self)

    StreamingQuery.isActive = property(hooked_is_active, doc=StreamingQuery.isActive.__doc__)  # type: ignore[method-assign, assignment]
    StreamingQuery.stop = hooked_stop  # type: ignore[method-assign]
