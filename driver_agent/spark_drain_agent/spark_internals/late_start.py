"""Starts a query later than the application has, as it would have been started then."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.spark_internals.at_start import at_start
from spark_drain_agent.spark_internals.errors import UnsupportedSparkError
from spark_drain_agent.spark_internals.reflection import companion, private_field, set_private_field
from spark_drain_agent.spark_internals.session import DEFAULT_FOLDER, SparkInternals, is_stopped, pins_threads
from spark_drain_agent.spark_internals.sink_options import give_own_options, is_a_librarys
from spark_drain_agent.start_waits import begin_launch

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.writer import CapturedWriter

__all__ = ["LateStart", "starts_late"]

_MARK = "spark.sparkdrain.lateStart"
"""Local property: the query's thread inherits it from the one that starts it, and has it until its listeners were told."""


def starts_late(context: SparkContext) -> bool:
    """Return whether the calling code is a listener's that is told of a late start, which is known where PySpark pins threads."""
    return not is_stopped(context) and pins_threads(context) and context.getLocalProperty(_MARK) is not None


class LateStart:
    """A start with the session as it is now: its confs, schema, views and functions, of which Spark makes a copy in each start.

    Parameters
    ----------
    internals
        Access to the session.
    captured, location
        The writer, and its checkpoint folder; None for a temporary one.
    """

    def __init__(self, internals: SparkInternals, captured: CapturedWriter, location: str | None) -> None:
        self._session = internals.cloned_session()
        self._present, self.internals = internals, SparkInternals(internals.session, self._session)
        self._asked = captured
        self.captured = captured if location is None else internals.placed_at(captured, location)
        self._location, self._mark = location, uuid.uuid4().hex

    def _give_session(self, asked: CapturedWriter, query_id: str) -> bool:
        """Let the query of this id, if it is the one of this start, run in the copy of the session, with the sink that was asked for."""
        live = self.internals.live_of(query_id)
        if pins_threads(self.internals.context):
            found = live.local_property(_MARK) == self._mark
        else:  # a thread's properties are those of any
            found = any(query.id == query_id for query in self.internals.started_like(self.captured, self._location))
        if found:
            live.session = self._session
            if (file_sink := live.file_sink) is not None:
                set_private_field(file_sink, "sparkSession", self.captured.dataset.sparkSession())  # as it is at each batch
            if is_a_librarys(self.internals, asked):
                give_own_options(self.internals, asked, live)
            self.internals.context.setLocalProperty(_MARK, None)  # type: ignore[arg-type]  # what its batches start is not late
        return found

    @contextmanager
    def _analysis_as_of_start(self) -> Iterator[None]:
        """Have Spark check the query by the confs that the session had: SQLConf.withExistingConf, which takes a function of Scala's."""
        if not pins_threads(self.internals.context):
            yield
            return
        confs = private_field(companion(self.internals.jvm, "org.apache.spark.sql.internal.SQLConf"), "existingConf")
        before = confs.get()
        confs.set(self._session.sessionState().conf())
        try:
            yield
        finally:
            confs.set(before)

    @property
    def _default_folder_has_changed(self) -> bool:
        return self._present.session_conf(DEFAULT_FOLDER) != self.internals.session_conf(DEFAULT_FOLDER)

    def launch(self) -> StreamingQuery:
        """Start the query.

        The application's session is not touched, since others use it meanwhile, and Spark looks up sink, table and their confs in a copy.
        The query is listed in the application's all the same.

        Raises
        ------
        UnsupportedSparkError
            The query could not be given its session; it does not run.
        StartGivenUpError
            The application does not want it any more, or has started another one on its checkpoint.
        """
        context = self.internals.context
        if self._location is None and not pins_threads(context) and self._default_folder_has_changed:
            raise UnsupportedSparkError(
                f"the session's {DEFAULT_FOLDER} has changed since start(), and with PYSPARK_PIN_THREAD=false Spark would start the query "
                "there: set its option checkpointLocation"
            )
        application, asked, placed = self.captured.dataset.sparkSession(), self._asked, self.captured
        if not placed.to_memory:
            starting = self.internals.starting_session(self._session, application)
            asked, placed = (self.internals.of_session(writer, starting) for writer in (asked, placed))
        with at_start(self.internals, application, functools.partial(self._give_session, asked)) as listener:
            context.setLocalProperty(_MARK, self._mark)
            try:
                with self._analysis_as_of_start():
                    begin_launch()  # at the last moment: Spark would stop a query that runs on its checkpoint
                    launched = self.internals.launch(placed)
            finally:
                context.setLocalProperty(_MARK, None)  # type: ignore[arg-type]  # PySpark removes a property by None
        if launched.id not in listener.changed:
            launched.stop()
            raise UnsupportedSparkError("the query cannot be given the session as it was at start()")
        return launched
