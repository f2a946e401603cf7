"""Starts a query later than the application has, as it would have been started then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import java_import  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.spark_internals.errors import UnsupportedSparkError

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals
    from spark_drain_agent.spark_internals.writer import CapturedWriter

__all__ = ["LateStart"]


class _Listener(StreamingQueryListener):
    """Gives a query that starts another session, in its own thread: Spark waits for it before the query does anything."""

    def __init__(self, late: LateStart) -> None:
        self._late = late
        self.given: list[str] = []

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # pyspark's name
        if self._late.give_session(str(event.id)):
            self.given.append(str(event.id))

    def onQueryProgress(self, event: Any) -> None:  # noqa: ARG002, N802  # pyspark's name
        return

    def onQueryIdle(self, event: Any) -> None:  # noqa: ARG002, N802  # pyspark's name
        return

    def onQueryTerminated(self, event: Any) -> None:  # noqa: ARG002, N802  # pyspark's name
        return


class LateStart:
    """A start with the session as it is now: its confs, schema, views and functions, of which Spark makes a copy in each start.

    Parameters
    ----------
    internals
        Access to Spark.
    captured, location
        The writer, and its checkpoint folder; None for a temporary one.
    """

    def __init__(self, internals: SparkInternals, captured: CapturedWriter, location: str | None) -> None:
        self._internals, self._location = internals, location
        self.captured = captured if location is None else internals.placed_at(captured, location)
        self._session = internals.cloned_session()

    def give_session(self, query_id: str) -> bool:
        """Let the query of this id, if it is the one of this start, run in the copy of the session that was made for it."""
        found = [query for query in self._internals.started_like(self.captured, self._location) if query.id == query_id]
        for query in found:
            self._internals.live(query).session = self._session
        return bool(found)

    def launch(self) -> StreamingQuery:
        """Start the query.

        The application's session is not touched: others use it meanwhile, and a query of another one would not be listed in it.

        Raises
        ------
        UnsupportedSparkError
            The query could not be given its session; it does not run.
        """
        gateway, streams = self._internals.context._gateway, self.captured.dataset.sparkSession().streams()
        assert gateway is not None
        java_import(gateway.jvm, "org.apache.spark.sql.streaming.*")  # as pyspark's addListener does
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        listener = _Listener(self)
        streams.addListener(listener._jlistener)
        try:
            launched = self._internals.launch(self.captured)
        finally:
            streams.removeListener(listener._jlistener)
        if launched.id not in listener.given:
            launched.stop()
            raise UnsupportedSparkError("the query cannot be given the session as it was at start()")
        return launched
