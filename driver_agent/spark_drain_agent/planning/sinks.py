"""What a sink does with batch ids, by the class of the live sink: the name of a format says little, and that of a table nothing."""

from __future__ import annotations

from spark_drain_agent.checkpoint.batch_ids import BatchIds

__all__ = ["batch_ids_of"]

_SINKS = {
    BatchIds.NONE: (
        ("org.apache.spark.sql.kafka010.", ("KafkaTable", "KafkaSink")),
        ("org.apache.spark.sql.execution.", ("ConsoleTable", "NoopTable", "MemorySink")),
    ),
    BatchIds.BY_QUERY: (
        ("org.apache.spark.sql.delta.", ("DeltaSink",)),
        ("org.apache.iceberg.spark.source.", ("SparkTable",)),
    ),
    BatchIds.REMEMBERED: (
        ("org.apache.spark.sql.execution.", ("FileStreamSink",)),
        ("org.apache.hudi.", ("HoodieStreamingSink",)),
        ("org.elasticsearch.spark.sql.streaming.", ("EsSparkSqlStreamingSink",)),
    ),
}


def batch_ids_of(sink_class: str) -> BatchIds:
    """Return what the sink of a running query does with batch ids.

    Parameters
    ----------
    sink_class
        Full name of its class; "" where no query runs, whose sink could be asked.
    """
    simple = sink_class.rstrip("$").rsplit(".", 1)[-1].rsplit("$", 1)[-1]
    for kind, known in _SINKS.items():
        if any(sink_class.startswith(package) and simple in classes for package, classes in known):
            return kind
    return BatchIds.UNKNOWN
