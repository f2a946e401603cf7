"""The confs of a query's own session, set after Spark has copied the application's session for it, and before its first batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import java_import  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.spark_internals.errors import UnsupportedSparkError
from spark_drain_agent.spark_internals.trees import pairs

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals
    from spark_drain_agent.spark_internals.writer import CapturedWriter

__all__ = ["confs_of", "start_with_confs"]


class _Listener(StreamingQueryListener):
    """Calls a function with the id of each query that starts, in its thread: Spark waits for it before the query does anything."""

    def __init__(self, started: Callable[[str], None]) -> None:
        self._started = started

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # pyspark's name
        self._started(str(event.id))

    def onQueryProgress(self, event: Any) -> None:  # noqa: ARG002, N802  # pyspark's name
        return

    def onQueryIdle(self, event: Any) -> None:  # noqa: ARG002, N802  # pyspark's name
        return

    def onQueryTerminated(self, event: Any) -> None:  # noqa: ARG002, N802  # pyspark's name
        return


def confs_of(captured: CapturedWriter) -> dict[str, str]:
    """Return the confs that are set in the session in which a writer starts its query."""
    return _confs(captured.dataset.sparkSession())


def start_with_confs(internals: SparkInternals, captured: CapturedWriter, location: str | None, confs: Mapping[str, str]) -> StreamingQuery:
    """Start a query as the application would have started it when its session had other confs.

    The application's session is not touched: others use it meanwhile, and a query of another one would not be listed in it.

    Parameters
    ----------
    internals
        Access to Spark.
    captured, location
        The writer, and its checkpoint folder; None for a temporary one.
    confs
        As `confs_of` has returned them.

    Raises
    ------
    UnsupportedSparkError
        The query's own confs could not be set; it does not run.
    """
    session = captured.dataset.sparkSession()
    present = _confs(session)
    changed = {name: confs.get(name) for name in {*confs, *present} if confs.get(name) != present.get(name)}
    if not changed:
        return internals.launch(captured)
    found: list[str] = []

    def started(query_id: str) -> None:
        for query in internals.started_like(captured, location):
            if query.id == query_id:
                _set_confs(internals.live(query).session, changed)
                found.append(query_id)

    gateway = internals.context._gateway
    assert gateway is not None
    java_import(gateway.jvm, "org.apache.spark.sql.streaming.*")  # as pyspark's addListener does
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    listener = _Listener(started)._jlistener
    session.streams().addListener(listener)
    try:
        launched = internals.launch(captured)
    finally:
        session.streams().removeListener(listener)
    if launched.id not in found:
        launched.stop()
        raise UnsupportedSparkError("the session's confs have changed since start(), and the query's own cannot be set")
    return launched


def _confs(session: Any) -> dict[str, str]:
    return {name: str(value) for name, value in pairs(session.sessionState().conf().getAllConfs())}


def _set_confs(session: Any, confs: Mapping[str, str | None]) -> None:
    conf = session.sessionState().conf()
    for name, value in confs.items():
        if value is None:
            conf.unsetConf(name)
        else:
            conf.setConfString(name, value)
