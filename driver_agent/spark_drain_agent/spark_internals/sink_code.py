"""Where a sink writes to and what code of the application it calls, as text that is equal for equal sinks of two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_drain_agent.spark_internals.driver_code import batch_function_digest
from spark_drain_agent.spark_internals.python_function import function_digest
from spark_drain_agent.spark_internals.reflection import private_field
from spark_drain_agent.spark_internals.writer import CapturedWriter

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["sink_text"]

_DESTINATIONS = ("path", "topic", "dbtable", "url")


def sink_text(internals: SparkInternals, captured: CapturedWriter) -> str:
    """Return kind and destination of a writer's sink, and a digest of the Python code that it calls for each batch or row."""
    named = [captured.path, captured.table, *(captured.option(name) for name in _DESTINATIONS)]
    return f"{captured.source} {named} {_batch_function(internals, captured)} {_row_function(internals, captured)}"


def _batch_function(internals: SparkInternals, captured: CapturedWriter) -> str:
    """Return a digest of the function of foreachBatch, which the JVM calls by py4j."""
    caller = captured.fields.get("foreachBatchWriter")
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


def _row_function(internals: SparkInternals, captured: CapturedWriter) -> str:
    """Return a digest of the function of foreach (PythonForeachWriter), which executors call."""
    writer = captured.fields.get("foreachWriter")
    function = None if writer is None else private_field(writer, "func")
    return "" if function is None else function_digest(internals, function)
