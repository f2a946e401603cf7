"""What a running query's sink and sources really are, whatever format its writer names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from spark_drain_agent.spark_internals.calls import attempt
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.reflection import private_field

__all__ = ["LiveSink", "describe_sink", "described_table", "source_name"]


@dataclass(frozen=True)
class LiveSink:
    """The sink of a running query.

    Parameters
    ----------
    kind
        Class without package and ``$``: ``FileStreamSink``, ``DeltaSink``, ``ForeachBatchSink``, ``HoodieStreamingSink``, or the class of a
        DataSource V2 table, such as ``KafkaTable``, ``ForeachWriterTable``, and ``SparkTable`` of Iceberg.
    package
        Its package, since another format may have a class of the same name.
    table
        Full name of a DataSource V2 table; "" for other sinks.
    location
        Its folder, or "" where it has none or keeps it to itself.
    """

    kind: str
    package: str
    table: str = ""
    location: str = ""

    @property
    def full_name(self) -> str:
        """Name of the class with its package."""
        return f"{self.package}.{self.kind}"


def describe_sink(sink: Any) -> LiveSink:
    """Return what a sink is."""
    package, _, kind = str(sink.getClass().getName()).rstrip("$").rpartition(".")
    try:
        return LiveSink(kind, package, *described_table(sink))
    except JavaError:  # no table: Spark gives sinks of the older kind the methods, and none of them answers
        path = private_field(sink, "path")
        return LiveSink(kind, package, location="" if path is None else str(path if isinstance(path, str) else path.toString()))


def described_table(table: Any) -> tuple[str, str]:
    """Return the full name of a DataSource V2 table, and its folder, or "" where it does not tell."""
    return str(attempt(table.name)), str(table.properties().get("location") or "")


def source_name(source: Any) -> str:
    """Return a name of a source that is the same in every run: its own, or its class and table where it has only a Java object's."""
    described = str(source.toString())
    if re.search(r"@[0-9a-f]+$", described) is None:
        return described
    kind = str(source.getClass().getSimpleName())
    table = private_field(source, "table")
    return kind if table is None else f"{kind}[{table.toString()}]"
