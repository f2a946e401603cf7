"""The options that a sink is given where the agent starts its query on another folder than its checkpoint.

A sink of a library may keep its own log of what it has committed below the option checkpointLocation, as that of elasticsearch-hadoop does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_drain_agent.spark_internals.data_sources import data_source_class
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.trees import pairs

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.live_query import LiveQuery
    from spark_drain_agent.spark_internals.session import SparkInternals
    from spark_drain_agent.spark_internals.writer import CapturedWriter

__all__ = ["give_own_options", "is_a_librarys"]

_LOCATION = "checkpointLocation"
_SPARKS = ("org.apache.spark.sql.execution.", "org.apache.spark.sql.kafka010.")
_PYTHON = "PythonDataSourceV2"
_NO_FORMATS = ("memory", "foreach", "foreachbatch")


def is_a_librarys(internals: SparkInternals, captured: CapturedWriter) -> bool:
    """Return whether a writer's sink is none of Spark's own, which keep nothing below checkpointLocation."""
    if captured.table is not None:
        return True
    if captured.source.lower() in _NO_FORMATS:
        return False
    try:
        with internals.active(captured):  # a session knows its data sources that are written in Python
            provider = data_source_class(internals, captured.source)
    except JavaError:  # the start will say so
        return False
    return not str(provider.getName()).startswith(_SPARKS) or str(provider.getSimpleName()) == _PYTHON


def give_own_options(internals: SparkInternals, captured: CapturedWriter, live: LiveQuery) -> None:
    """Give the sink of a query that starts, on whatever folder, the checkpointLocation that the application has given it, or none.

    Parameters
    ----------
    internals
        Access to Spark.
    captured
        The application's writer.
    live
        The query.
    """
    options, own = live.options, captured.option(_LOCATION)
    for name in [name for name, _ in pairs(options) if name.lower() == _LOCATION.lower()]:
        options = getattr(options, "$minus")(name)
    live.options = options if own is None else options.updated(_LOCATION, own)
    v1 = internals.jvm.java.lang.Class.forName("org.apache.spark.sql.execution.streaming.Sink")
    if captured.table is None and v1.isInstance(live.java_sink):
        live.java_sink = _v1_sink(internals, captured)


def _v1_sink(internals: SparkInternals, captured: CapturedWriter) -> Any:
    """Return the sink as DataStreamWriter.startInternal makes it."""
    jwriter, options = internals.java_writer(captured), captured.fields["extraOptions"]
    if captured.path is not None:
        options = options.updated("path", captured.path)
    method = next(found for found in jwriter.getClass().getDeclaredMethods() if str(found.getName()) == "createV1Sink")
    method.setAccessible(True)
    arguments = internals.array(internals.jvm.java.lang.Object, 1)
    arguments[0] = options
    return method.invoke(jwriter, arguments)
