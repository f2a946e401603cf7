"""What Spark makes in `start()` for the program to look at before there is a batch."""

from __future__ import annotations

import json

from pyspark.sql.types import StructType

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.errors import in_words, interrupted
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.trees import items
from spark_drain_agent.spark_internals.writer import CapturedWriter

__all__ = ["make_destination"]


def make_destination(internals: SparkInternals, captured: CapturedWriter) -> None:
    """Make the table of `toTable()` where there is none, or the view of a memory sink, for a query that is started later.

    Where that fails, the start will say why.
    """
    try:
        with as_agent():
            if captured.table is not None:
                if not internals.session.catalog.tableExists(captured.table):
                    internals.session.sql(_definition(captured, captured.table))
            elif captured.source.lower() == "memory" and captured.query_name:
                schema = StructType.fromJson(json.loads(captured.dataset.schema().json()))
                internals.session.createDataFrame([], schema).createOrReplaceTempView(captured.query_name)
    except Exception as error:
        if interrupted(error):
            raise
        LOG.warning("what the query writes to is not there before it is started: %s", in_words(error))


def _definition(captured: CapturedWriter, table: str) -> str:
    """Return the statement for the table that `DataStreamWriter.toTable` makes."""
    text = f"CREATE TABLE IF NOT EXISTS {table} ({captured.dataset.schema().asNullable().toDDL()}) USING {_quoted(captured.source)}"
    for clause, field in (("PARTITIONED BY", "partitioningColumns"), ("CLUSTER BY", "clusteringColumns")):
        columns = captured.fields.get(field)
        if columns is not None and columns.isDefined():
            text += f" {clause} ({', '.join(_quoted(str(column)) for column in items(columns.get()))})"
    path = captured.option("path")
    if path is not None:
        escaped = path.replace("\\", "\\\\").replace("'", "\\'")
        text += f" LOCATION '{escaped}'"
    return text


def _quoted(name: str) -> str:
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))
