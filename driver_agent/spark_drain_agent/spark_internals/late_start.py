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
from spark_drain_agent.spark_internals.jvm_thread import in_one_jvm_thread, local_property, pins_threads, set_local_property
from spark_drain_agent.spark_internals.reflection import companion, private_field, set_private_field
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.sink_options import give_own_options, is_a_librarys
from spark_drain_agent.start_waits import begin_launch

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.writer import CapturedWriter

__all__ = ["LateStart", "starts_late"]

_MARK = "spark.sparkdrain.lateStart"
"""Local property: the query's thread inherits it from the one that starts it, and has it until its listeners were told."""


def starts_late(context: SparkContext) -> bool:
    """Return whether the calling code is a listener's that is told of a late start, which is known where PySpark pins threads."""
    return pins_threads(context) and local_property(context, _MARK) is not None


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
        self.internals = SparkInternals(internals.session, self._session)
        self._asked = captured
        self.captured = captured if location is None else internals.placed_at(captured, location)
        self._mark = uuid.uuid4().hex

    def _give_session(self, asked: CapturedWriter, query_id: str) -> bool:
        """Let the query of this id, if it is the one of this start, run in the copy of the session, with the sink that was asked for."""
        live = self.internals.live_of(query_id)
        found = live.local_property(_MARK) == self._mark
        if found:
            live.session = self._session
            if (file_sink := live.file_sink) is not None:
                set_private_field(file_sink, "sparkSession", self.captured.dataset.sparkSession())  # as it is at each batch
            if is_a_librarys(self.internals, asked):
                give_own_options(self.internals, asked, live)
            live.set_local_property(_MARK, None)  # what its batches start is not late
        return found

    @contextmanager
    def _analysis_as_of_start(self) -> Iterator[None]:
        """Have Spark check the query by the confs that the session had: SQLConf.withExistingConf, which takes a function of Scala's."""
        confs = private_field(companion(self.internals.jvm, "org.apache.spark.sql.internal.SQLConf"), "existingConf")
        before = confs.get()
        confs.set(self._session.sessionState().conf())
        try:
            yield
        finally:
            confs.set(before)

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
        application, asked, placed = self.captured.dataset.sparkSession(), self._asked, self.captured
        if not placed.to_memory:
            starting = self.internals.starting_session(self._session, application)
            asked, placed = (self.internals.of_session(writer, starting) for writer in (asked, placed))
        change = functools.partial(self._give_session, asked)
        with at_start(self.internals, application, change) as listener, in_one_jvm_thread(context):
            set_local_property(context, _MARK, self._mark)
            try:
                with self._analysis_as_of_start():
                    begin_launch()  # at the last moment: Spark would stop a query that runs on its checkpoint
                    launched = self.internals.launch(placed)
            finally:
                set_local_property(context, _MARK, None)
        if launched.id not in listener.changed:
            launched.stop()
            raise UnsupportedSparkError("the query cannot be given the session as it was at start()")
        return launched
