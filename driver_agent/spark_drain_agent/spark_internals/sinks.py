"""Another sink in place of a query's own, for the rows that a drain does not send there."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_drain_agent.milestones import reached
from spark_drain_agent.spark_internals.data_sources import data_source_class
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.trial_folder import trial_folder
from spark_drain_agent.spark_internals.writer import CapturedWriter

__all__ = ["discard_once_at", "table_folder", "unwritable", "unwritable_columns", "write_once_at", "writes_files"]

_USABLE = "only delta and file formats (parquet, orc, json, csv, text, avro) can be used"
_DELTA = "org.apache.spark.sql.delta.sources.DeltaDataSource"
_REPLACEABLE = {"delta.appendOnly": "false"}
"""A property of the table that Delta makes, whatever the session's default is; to the other formats the option says nothing."""
_SESSION_CATALOG = "spark_catalog"
_DATA_SOURCES = "org.apache.spark.sql.execution.datasources"
_FILE_FORMAT, _FILE_SOURCE = f"{_DATA_SOURCES}.FileFormat", f"{_DATA_SOURCES}.v2.FileDataSourceV2"


def write_once_at(
    internals: SparkInternals, captured: CapturedWriter, checkpoint: str, *, output_mode: str, path: str, data_format: str
) -> StreamingQuery:
    """Start the captured query for one batch on another checkpoint folder, with a folder of files for a sink.

    The folder is replaced as a whole, so a batch that is executed again after a crash leaves its rows once.
    """

    def write(batch: DataFrame, _: int) -> None:
        batch.write.format(data_format).options(**_REPLACEABLE).mode("overwrite").save(path)
        reached("side-output-written")

    return _once_at(internals, captured, checkpoint, output_mode).foreachBatch(write).start()


def discard_once_at(internals: SparkInternals, captured: CapturedWriter, checkpoint: str) -> StreamingQuery:
    """Start the captured query for one batch on another checkpoint folder, with a sink that takes the rows and keeps none."""
    return _once_at(internals, captured, checkpoint, captured.output_mode).format("noop").start()


def _once_at(internals: SparkInternals, captured: CapturedWriter, checkpoint: str, output_mode: str) -> DataStreamWriter:
    writer = DataFrame(captured.dataset, internals.session).writeStream.outputMode(output_mode.lower())
    if captured.query_name:
        writer = writer.queryName(captured.query_name)
    return writer.option("checkpointLocation", checkpoint).trigger(once=True)


def writes_files(internals: SparkInternals, data_format: str) -> bool:
    """Return whether Spark writes a stream in this format with its file sink."""
    try:
        provider = data_source_class(internals, data_format)
    except JavaError:
        return False
    kinds = (_FILE_FORMAT, _FILE_SOURCE)
    return any(internals.jvm.java.lang.Class.forName(kind).isAssignableFrom(provider) for kind in kinds)


def table_folder(internals: SparkInternals, table: str, data_format: str, path: str | None) -> str | None:
    """Return the path of the folder of a table in one of Spark's file formats, "" for any other table.

    None for one that does not exist yet, and that a query in that format will make where the catalog puts it.

    Parameters
    ----------
    internals
        Access to Spark.
    table
        Its name.
    data_format, path
        Where it does not exist yet: what the query will make it with.
    """
    state = internals.session_state()
    try:
        parts = state.sqlParser().parseMultipartIdentifier(table)
        *catalogs, schema, name = (str(parts.apply(index)) for index in range(parts.size()))
        if catalogs not in ([], [_SESSION_CATALOG]):
            return ""
        jvm, catalog = internals.jvm, state.catalog()
        identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(name, jvm.scala.Option.apply(schema))
        if not catalog.tableExists(identifier):
            if not writes_files(internals, data_format):
                return ""
            return _in_schema(internals, schema, path) if path else None
        found = catalog.getTableMetadata(identifier)
        provider = found.provider()
        files = provider.isDefined() and writes_files(internals, str(provider.get()))
        return str(jvm.org.apache.hadoop.fs.Path(found.location()).toString()) if files else ""
    except JavaError:
        return ""


def _in_schema(internals: SparkInternals, schema: str, path: str) -> str:
    """Return where a table is made that is given a path: a relative one is below its schema's (`SessionCatalog`)."""
    hadoop_path = internals.jvm.org.apache.hadoop.fs.Path
    asked = hadoop_path(path)
    if asked.isAbsolute() or asked.toUri().isAbsolute():
        return internals.qualified(path)
    folder = internals.session_state().catalog().getDatabaseMetadata(schema).locationUri()
    return internals.qualified(str(hadoop_path(hadoop_path(folder), asked).toString()))


def unwritable(internals: SparkInternals, captured: CapturedWriter, data_format: str, folder: str) -> str:
    """Return why the query's rows cannot be written to files in a batch format, or "".

    No row of them is, beside the folder that they are meant for: only a real write meets everything that a format refuses.

    Raises
    ------
    UnwritableFolderError
        No folder can be made there, whatever the format.
    """
    try:
        provider = data_source_class(internals, data_format)
    except JavaError:
        return f"this Spark does not know it; {_USABLE}"
    if not writes_files(internals, data_format) and str(provider.getName()) != _DELTA:
        return _USABLE
    obstacle, by_type = _tried(internals, captured.dataset.schema(), data_format, folder)
    return f"{obstacle}: use a format that takes such columns, such as 'parquet' or 'json'" if by_type else obstacle


def unwritable_columns(internals: SparkInternals, rows: DataFrame, data_format: str, folder: str) -> str:
    """Return why rows with these columns cannot be written to files in a format, or ""; none of them is, see `unwritable`."""
    return _tried(internals, rows._jdf.schema(), data_format, folder)[0]


def _tried(internals: SparkInternals, schema: Any, data_format: str, folder: str) -> tuple[str, bool]:
    """Return why a write beside a folder without rows fails, or "", and whether for its columns."""
    empty = internals.session._jsparkSession.createDataFrame(internals.jvm.java.util.ArrayList(), schema)
    with trial_folder(internals, folder) as trial:
        try:
            DataFrame(empty, internals.session).write.format(data_format).save(f"{trial}/rows")
        except JavaError as error:
            return in_words(error), isinstance(error, AnalysisException)
    return "", False
