"""The confs of a query's own session, set after Spark has copied the application's session for it, and before its first batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import java_import  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql.streaming.listener import StreamingQueryListener

from spark_drain_agent.spark_internals.errors import UnsupportedSparkError
from spark_drain_agent.spark_internals.trees import pairs

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["confs_of", "with_confs"]


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


def confs_of(session: Any) -> dict[str, str]:
    """Return the confs that are set in a session of the JVM."""
    return {name: str(value) for name, value in pairs(session.sessionState().conf().getAllConfs())}


@contextmanager
def with_confs(internals: SparkInternals, session: Any, checkpoint: str | None, confs: Mapping[str, str]) -> Iterator[None]:
    """Give the query that is started in this block, from the application's session, the confs that this one had before.

    The application's session is not touched: others use it meanwhile, and one in another session would not be listed in it.

    Parameters
    ----------
    internals
        Access to Spark.
    session
        The JVM's session in which it is started.
    checkpoint
        URI of its checkpoint, None for a temporary folder.
    confs
        As `confs_of` has returned them.

    Raises
    ------
    UnsupportedSparkError
        The query runs, and may run with other confs.
    """
    present = confs_of(session)
    changed = {name: confs.get(name) for name in {*confs, *present} if confs.get(name) != present.get(name)}
    if not changed:
        yield
        return
    found: list[Any] = []
    roots = () if checkpoint is None else (checkpoint, str(internals.jvm.org.apache.hadoop.fs.Path(checkpoint).toUri().toString()))

    def started(query_id: str) -> None:
        query = session.streams().get(query_id)
        if not found and query is not None and (not roots or str(query.streamingQuery().resolvedCheckpointRoot()) in roots):
            own = query.streamingQuery().sparkSessionForStream()
            _set_confs(own, changed)
            found.append(own)

    gateway = internals.context._gateway
    assert gateway is not None
    java_import(gateway.jvm, "org.apache.spark.sql.streaming.*")  # as pyspark's addListener does
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    listener = _Listener(started)._jlistener
    session.streams().addListener(listener)
    try:
        yield
    finally:
        session.streams().removeListener(listener)
    if not found:
        raise UnsupportedSparkError("the session's confs have changed since start(), and the query's own cannot be set")


def _set_confs(session: Any, confs: Mapping[str, str | None]) -> None:
    conf = session.sessionState().conf()
    for name, value in confs.items():
        if value is None:
            conf.unsetConf(name)
        else:
            conf.setConfString(name, value)
