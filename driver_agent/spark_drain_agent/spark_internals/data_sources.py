"""Which class of Spark's, or of a library, reads and writes a format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["data_source_class"]


def data_source_class(internals: SparkInternals, data_format: str) -> Any:
    """Return the Java class of a format by its name or class name, as Spark looks it up (`DataSource`).

    Raises
    ------
    JavaError
        This Spark knows no such format.
    """
    return internals.jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(data_format, internals.sql_conf())
