"""Changes a query as it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import java_import  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql.streaming.listener import StreamingQueryListener

from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.errors import in_words
from spark_drain_agent.spark_internals.open_calls import afterwards

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["StartListener", "at_start"]


def _changes_nothing(_: str) -> bool:
    return False


class StartListener(StreamingQueryListener):
    """Called in a query's own thread as it starts: Spark waits for it before the query does anything.

    Parameters
    ----------
    change
        Changes the query of an id, and returns whether it is the one that is meant.
    """

    def __init__(self, change: Callable[[str], bool]) -> None:
        self._change = change
        self.changed: list[str] = []

    def let_go(self) -> None:
        """Keep nothing any more: Python and the JVM each hold the other's half of a listener, for as long as the driver lives."""
        self._change = _changes_nothing
        self.__dict__.pop("_jlistenerobj", None)  # what PySpark's _jlistener has made

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # pyspark's name
        """Change the query, if it is the one."""
        try:
            if self._change(str(event.id)):
                self.changed.append(str(event.id))
        except Exception as error:
            LOG.warning("a query cannot be changed as it starts: %s", in_words(error))
            raise

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # pyspark's name
        """Nothing."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802  # pyspark's name
        """Nothing."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  # pyspark's name
        """Nothing."""


@contextmanager
def at_start(internals: SparkInternals, session: Any, change: Callable[[str], bool]) -> Iterator[StartListener]:
    """Call a function for each query that starts in a JVM session meanwhile; see `StartListener`."""
    gateway = internals.context._gateway
    assert gateway is not None
    java_import(gateway.jvm, "org.apache.spark.sql.streaming.*")  # as pyspark's addListener does
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    listener, streams = StartListener(change), session.streams()
    streams.addListener(listener._jlistener)

    def remove() -> None:
        streams.removeListener(listener._jlistener)
        listener.let_go()

    with afterwards(remove):
        yield listener
