"""A DataStreamWriter as it was when its query was started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.spark_internals.trees import pairs

__all__ = ["SAME_VERSION_CONF", "VERSION_CONF", "CapturedWriter"]

SAME_VERSION_CONF = "spark.sparkdrain.sameVersionAs"
"""Conf of the application: the id of a drain whose version this is, whatever its digest says."""
VERSION_CONF = "spark.sparkdrain.applicationVersion"
"""Conf of the application: the owner's word for its version, where each start makes another plan (a time of day as a literal)."""


@dataclass(frozen=True)
class CapturedWriter:
    """A DataStreamWriter as it was when its query was started; later changes to the user's object do not reach it.

    Parameters
    ----------
    dataset
        JVM Dataset.
    fields
        JVM field name to value, all but the dataset.
    launch
        Starts a query from a JVM writer, by path, table or neither.
    python_query
        Wraps a JVM query as pyspark does for this writer.
    path, table
        What the query was started into, where that was not among the options.
    code
        Digest of the Python code that the sink calls, "" where it calls none.
    confs
        What texts become as times and numbers depends on these values.
    local_properties
        Of the thread that started it, which the query inherits.
    version, same_version_as
        What the owner says of the application's version; "" for nothing. The next start may have another word.
    file_sink
        The JVM's object that writes the files of the query that ran, for another start of it; None for a new one.
    """

    dataset: Any
    fields: dict[str, Any]
    launch: Callable[[Any], Any]
    python_query: Callable[[Any], StreamingQuery]
    path: str | None = None
    table: str | None = None
    code: str = ""
    confs: tuple[str, ...] = ()
    local_properties: tuple[tuple[str, str], ...] = ()
    version: str = ""
    same_version_as: str = ""
    file_sink: Any = None

    @property
    def source(self) -> str:
        """Short name of the sink, such as ``kafka`` or ``foreachBatch``."""
        return str(self.fields["source"])

    @property
    def to_memory(self) -> bool:
        """Whether its rows are a view of the application's session."""
        return self.source == "memory"

    @property
    def output_mode(self) -> str:
        """``Append``, ``Update`` or ``Complete``."""
        return str(self.fields["outputMode"].toString())

    @property
    def trigger(self) -> str:
        """Class of the trigger without package and ``$``, such as ``ProcessingTimeTrigger``."""
        return str(self.fields["trigger"].getClass().getSimpleName()).rstrip("$")

    @property
    def interval_ms(self) -> int | None:
        """Milliseconds between two triggers, 0 for one after the other, None where the trigger has no interval."""
        trigger = self.fields["trigger"]
        return int(trigger.intervalMs()) if self.trigger == "ProcessingTimeTrigger" else None

    @property
    def options(self) -> Iterator[tuple[str, str]]:
        """Name and value of each writer option."""
        return pairs(self.fields["extraOptions"])

    def option(self, name: str) -> str | None:
        """Return a writer option, case-insensitively."""
        found = self.fields["extraOptions"].get(name)
        return str(found.get()) if found.isDefined() else None

    def named(self) -> CapturedWriter:
        """Return what messages say of it, without what Spark or the application keeps for it."""
        fields = {name: self.fields[name] for name in ("source", "outputMode", "trigger", "extraOptions")}
        return replace(self, dataset=None, fields=fields, launch=_refused, python_query=_refused)

    @property
    def query_name(self) -> str:
        """The query's name, or "" where it has none."""
        return self.option("queryName") or ""


def _refused(_: Any) -> NoReturn:
    raise ValueError("a query that the application has stopped is not started again by the agent")
