"""The next version: sums instead of counts, and the windows that version 1 had not finished are read as input.

Version 1 was drained with `incompleteWindows: {policy: SideOutput, sideOutput: {path: FOLDER/incomplete, format: json}}`. One source
reads clicks and incomplete windows alike, since a checkpoint goes on only with as many sources as it has. Usage: v2.py FOLDER.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

CLICK = "at TIMESTAMP, user STRING"
INCOMPLETE = "window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, clicks LONG"


def start(spark: SparkSession, folder: str) -> StreamingQuery:
    """Start the query."""
    rows = spark.readStream.schema(f"{CLICK}, {INCOMPLETE}").json(f"{folder}/{{clicks,incomplete/counts}}")
    clicks = rows.select(
        f.coalesce("at", "window.start").alias("at"),  # anywhere in the window will do
        "user",
        f.coalesce("clicks", f.lit(1)).alias("clicks"),
    )
    counts = clicks.withWatermark("at", "1 minute").groupBy(f.window("at", "10 minutes"), "user").agg(f.sum("clicks").alias("clicks"))

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").json(f"{folder}/counts/v2-{batch_id}")

    writer = counts.writeStream.queryName("counts").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.foreachBatch(write).start()


if __name__ == "__main__":
    start(SparkSession.builder.appName("clicks-v2").getOrCreate(), sys.argv[1]).awaitTermination()
