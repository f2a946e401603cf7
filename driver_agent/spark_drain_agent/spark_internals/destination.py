"""What Spark makes in `start()` for the program to look at before there is a batch."""

from __future__ import annotations

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.errors import JavaError, in_words, interrupted
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.sinks import writes_files
from spark_drain_agent.spark_internals.writer import CapturedWriter

__all__ = ["make_destination"]

_NO_FOLDER = ""
"""A path that Hadoop refuses, and so Spark a start on it."""


def make_destination(internals: SparkInternals, captured: CapturedWriter) -> None:
    """Make the table of `toTable()`, the folder of files or the view of a memory sink, for a query that is started later.

    Where that fails, the start will say why.
    """
    try:
        with as_agent():
            if captured.table is not None:
                _make_table(internals, captured, captured.table)
            elif captured.to_memory and captured.query_name:
                internals.empty_frame(captured.dataset.schema()).createOrReplaceTempView(captured.query_name)
            elif writes_files(internals, captured.source):
                _refused_start(internals, captured)  # the sink makes its log in the folder of its files (`FileStreamSink`)
    except Exception as error:
        if interrupted(error):
            raise
        LOG.warning("what the query writes to is not there before it is started: %s", in_words(error))


def _make_table(internals: SparkInternals, captured: CapturedWriter, table: str) -> None:
    """Have `DataStreamWriter.toTable` itself make the table, which comes before a start that fails for want of a checkpoint folder."""
    exists = internals.session.catalog.tableExists
    if exists(table):
        return
    refused = _refused_start(internals, captured)
    if refused is not None and not exists(table):
        raise refused


def _refused_start(internals: SparkInternals, captured: CapturedWriter) -> Exception | None:
    """Have Spark make what the query writes to, in a start that it refuses next, and return what it says."""
    try:
        internals.launch(internals.placed_at(captured, _NO_FOLDER)).stop()
    except JavaError as error:
        if interrupted(error):
            raise
        return error
    return None
