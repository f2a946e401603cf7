"""Where a sink writes to and what code of the application it calls, as text that is equal for equal sinks of two runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from spark_drain_agent.spark_internals.data_sources import data_source_class
from spark_drain_agent.spark_internals.driver_code import batch_function_digest
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.program import look_at_program, program_text
from spark_drain_agent.spark_internals.python_function import function_digest
from spark_drain_agent.spark_internals.redaction import redacted_folder, redacted_place
from spark_drain_agent.spark_internals.reflection import private_field
from spark_drain_agent.spark_internals.source_options import counted_options
from spark_drain_agent.spark_internals.unknown import or_unknown
from spark_drain_agent.spark_internals.writer import CapturedWriter

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["sink_code", "sink_place", "sink_text"]

_IN_A_FOLDER = ("delta", "hudi", "iceberg")


def sink_code(internals: SparkInternals, fields: Mapping[str, Any]) -> str:
    """Return a digest of the Python code that a sink calls for each batch or row, and of its program, "" for other sinks.

    What the code refers to changes while it runs, so that this is asked at the start. What the program is made of is noted then, too.

    Parameters
    ----------
    internals
        Access to Spark.
    fields
        Of a writer.
    """
    return or_unknown("the code of a sink", lambda: _digests(internals, fields))


def _digests(internals: SparkInternals, fields: Mapping[str, Any]) -> str:
    look_at_program()
    return _batch_function(internals, fields) or _row_function(internals, fields) or _data_source(internals, str(fields["source"]))


def _data_source(internals: SparkInternals, name: str) -> str:
    """Return a digest of the class of a Python data source (`UserDefinedPythonDataSource`), "" for other formats."""
    if name.lower() == "memory":  # Spark does not look it up either: it would ask Python for data sources of installed packages
        return ""
    try:
        if str(data_source_class(internals, name).getSimpleName()) != "PythonDataSourceV2":
            return ""
        made = internals.session_state().dataSourceManager().lookupDataSource(name)
    except JavaError:  # it is no format of this Spark, which the start will say
        return ""
    return f"{function_digest(internals, made.dataSourceCls())}\n{program_text()}"


def sink_text(internals: SparkInternals, captured: CapturedWriter) -> str:
    """Return kind, destination and options of a writer's sink, and the digest of its code."""
    place = captured.path and sink_place(internals, captured)
    return f"{captured.source} {place} {captured.table} {counted_options(captured.options)} {captured.code}"


def sink_place(internals: SparkInternals, captured: CapturedWriter) -> str:
    """Return where a writer's path leads, without passwords; "" where it has none.

    A folder, or the full name of a table, is one text however it is spelled, for the sinks of which it is known that they write there. To
    any other one its path may be anything, as an address.
    """
    path, source = captured.path or captured.option("path") or "", captured.source.lower()
    if not path:
        return ""
    if source == "iceberg" and "/" not in path:
        return internals.full_name(path)
    if source in _IN_A_FOLDER:
        with suppress(*JavaError):  # Hadoop does not understand it: the start will say so
            folder = internals.jvm.org.apache.hadoop.fs.Path(path)
            return redacted_folder(str(folder.toString()) if folder.toUri().isAbsolute() else internals.qualified(path))
    return redacted_place(path)


def _batch_function(internals: SparkInternals, fields: Mapping[str, Any]) -> str:
    """Return a digest of the function of foreachBatch, which the JVM calls by py4j."""
    caller = fields.get("foreachBatchWriter")
    if caller is None:
        return ""
    proxy = private_field(caller, "1")  # what the lambda of PythonForeachBatchHelper holds: arg$1
    proxies = internals.jvm.java.lang.reflect.Proxy
    if proxy is None or not proxies.isProxyClass(proxy.getClass()):
        return "a function in a JAR"
    handler = proxies.getInvocationHandler(proxy)
    gateway: Any = internals.context._gateway
    function = gateway.gateway_property.pool[str(private_field(handler, "id"))]
    return batch_function_digest(function.func)


def _row_function(internals: SparkInternals, fields: Mapping[str, Any]) -> str:
    """Return a digest of the function of foreach (PythonForeachWriter), which executors call."""
    writer = fields.get("foreachWriter")
    function = None if writer is None else private_field(writer, "func")
    return "" if function is None else f"{function_digest(internals, function)}\n{program_text()}"
