"""What each sink does with batch ids, by the class that Spark gives it; the names are those of live sinks on Spark 3.5 to 4.3."""

from __future__ import annotations

import pytest
from spark_drain_agent.checkpoint.batch_ids import BatchIds
from spark_drain_agent.planning.sinks import batch_ids_of


@pytest.mark.parametrize(
    ("sink_class", "batch_ids"),
    [
        ("org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable", BatchIds.NONE),
        ("org.apache.spark.sql.execution.streaming.ConsoleTable$", BatchIds.NONE),
        ("org.apache.spark.sql.execution.streaming.sources.ConsoleTable$", BatchIds.NONE),
        ("org.apache.spark.sql.execution.datasources.noop.NoopTable$", BatchIds.NONE),
        ("org.apache.spark.sql.execution.streaming.sources.MemorySink", BatchIds.NONE),
        ("org.apache.spark.sql.delta.sources.DeltaSink", BatchIds.BY_QUERY),
        ("org.apache.iceberg.spark.source.SparkTable", BatchIds.BY_QUERY),
        ("org.apache.spark.sql.execution.streaming.FileStreamSink", BatchIds.REMEMBERED),
        ("org.apache.spark.sql.execution.streaming.sinks.FileStreamSink", BatchIds.REMEMBERED),
        ("org.apache.hudi.HoodieStreamingSink", BatchIds.REMEMBERED),
        ("org.elasticsearch.spark.sql.streaming.EsSparkSqlStreamingSink", BatchIds.REMEMBERED),
        ("org.apache.spark.sql.execution.streaming.sources.ForeachBatchSink", BatchIds.UNKNOWN),
        ("org.apache.spark.sql.execution.streaming.sources.ForeachWriterTable", BatchIds.UNKNOWN),
        ("org.apache.spark.sql.execution.datasources.v2.python.PythonTable", BatchIds.UNKNOWN),
        ("com.example.KafkaTable", BatchIds.UNKNOWN),
        ("com.example.org.apache.hudi.HoodieStreamingSink", BatchIds.UNKNOWN),
        ("", BatchIds.UNKNOWN),
    ],
)
def test_what_a_sink_does_with_ids_it_has_seen(sink_class: str, batch_ids: BatchIds) -> None:
    assert batch_ids_of(sink_class) is batch_ids
