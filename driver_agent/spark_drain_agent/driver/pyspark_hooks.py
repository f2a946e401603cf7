"""Public PySpark methods that the agent stands behind: sessions and query starts; see `query_hooks` and `listener_hooks` for the others."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_drain_agent.agent_thread import in_callback, is_agent
from spark_drain_agent.driver.agent import Agent
from spark_drain_agent.driver.listener_hooks import hook_listeners
from spark_drain_agent.driver.query_hooks import hook_queries
from spark_drain_agent.spark_internals.connections import keep_from_children
from spark_drain_agent.spark_internals.session import SparkInternals, classic

__all__ = ["install"]

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
    keep_from_children()
    _hook_session(on_session, current)
    _hook_start(on_session)
    hook_queries(current)
    hook_listeners(current)


def _hook_session(on_session: Callable[[SparkSession], Agent | None], current: Callable[[], Agent | None]) -> None:
    construct = SparkSession.__init__

    @functools.wraps(construct)
    def hooked_init(self: SparkSession, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        if not is_agent():
            on_session(self)

    SparkSession.__init__ = hooked_init  # type: ignore[method-assign]
    for name in ("getOrCreate", "create"):
        _look_for_connect(name, on_session)
    for holder in (SparkSession, SparkContext):
        _hold_before(holder, "stop", current)


def _look_for_connect(name: str, on_session: Callable[[SparkSession], Agent | None]) -> None:
    """Meet sessions of Spark Connect too, which the builder makes of another class; importing that would need packages of its own."""
    make = getattr(SparkSession.Builder, name)

    @functools.wraps(make)
    def hooked(self: SparkSession.Builder) -> SparkSession:
        session: SparkSession = make(self)
        if not classic(session) and not is_agent():
            on_session(session)
        return session

    setattr(SparkSession.Builder, name, hooked)


def _hold_before(holder: type, name: str, current: Callable[[], Agent | None]) -> None:
    stop = getattr(holder, name)

    @functools.wraps(stop)
    def held(self: Any) -> None:
        agent = current()
        if agent is not None and not is_agent() and agent.internals.ends_with(self):  # else it was stopped before: that ends nothing
            if agent.keeps_driver and in_callback():
                agent.stop_later(lambda: stop(self))
                return
            agent.hold_exit()
        stop(self)

    setattr(holder, name, held)


def _hook_start(on_session: Callable[[SparkSession], Agent | None]) -> None:
    """Attach here too: a session that was made out of the agent's sight may belong to another SparkContext than the agent."""
    start, to_table = DataStreamWriter.start, DataStreamWriter.toTable
    of_start, of_table = inspect.signature(start), inspect.signature(to_table)

    @functools.wraps(start)
    def hooked_start(self: DataStreamWriter, path: str | None = None, *args: Any, **kwargs: Any) -> StreamingQuery:
        agent = None if is_agent() else on_session(self._spark)
        if agent is None or _refuses(of_start, self, path, *args, **kwargs):
            return start(self, path, *args, **kwargs)
        _configure(self, *args, **kwargs)
        internals = SparkInternals(self._spark)
        return agent.start_query(internals, lambda: internals.capture(self, path=path), lambda: start(self, path))

    @functools.wraps(to_table)
    def hooked_to_table(self: DataStreamWriter, tableName: str, *args: Any, **kwargs: Any) -> StreamingQuery:  # noqa: N803
        agent = None if is_agent() else on_session(self._spark)
        if agent is None or _refuses(of_table, self, tableName, *args, **kwargs):
            return to_table(self, tableName, *args, **kwargs)
        _configure(self, *args, **kwargs)
        internals = SparkInternals(self._spark)
        return agent.start_query(internals, lambda: internals.capture(self, table=tableName), lambda: to_table(self, tableName))

    DataStreamWriter.start = hooked_start  # type: ignore[method-assign]
    DataStreamWriter.toTable = hooked_to_table  # type: ignore[method-assign]


def _refuses(signature: inspect.Signature, /, *args: Any, **kwargs: Any) -> bool:
    """Return whether a call raises a TypeError, which should name the function and not one of the agent's."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return True
    return False


def _configure(
    writer: DataStreamWriter,
    /,  # an option may have any name
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
