"""The next version: other windows, another grouping key and so another state schema, more partitions, on the same checkpoint.

Plain Spark refuses to start it on the checkpoint of v1 (STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE).
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # the name that PySpark's own documentation uses
from spark_drain_agent import is_drain_pane

events, checkpoint, output = sys.argv[1:]
spark = SparkSession.builder.appName("demo-v2").config("spark.sql.shuffle.partitions", 3).getOrCreate()


def write(windows: DataFrame, batch_id: int) -> None:
    """Write one file per batch; a batch that is executed again replaces its own file."""
    rows = windows.withColumn("early", F.lit(is_drain_pane())).toJSON().collect()
    target = Path(output, f"batch-{batch_id}.jsonl")
    unfinished = target.with_suffix(".part")
    unfinished.write_text("".join(f"{row}\n" for row in rows))
    unfinished.replace(target)


query = (
    spark.readStream.schema("number LONG, time TIMESTAMP, kind STRING")
    .option("maxFilesPerTrigger", 5)
    .json(events)
    .withWatermark("time", "1 hour")
    .groupBy(F.window("time", "20 minutes"), "kind")
    .agg(F.count("*").alias("count"), F.collect_list("number").alias("numbers"))
    .select(F.col("window.start").alias("start"), F.col("window.end").alias("end"), "kind", "count", "numbers")
    .writeStream.queryName("windows")
    .trigger(processingTime="1 second")
    .option("checkpointLocation", checkpoint)
    .foreachBatch(write)
    .start()
)
query.awaitTermination()
