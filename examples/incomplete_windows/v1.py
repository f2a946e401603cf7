"""Count clicks per user and 10-minute window: from a folder of JSON files into another.

An ordinary PySpark program: it knows nothing of drains. Usage: v1.py FOLDER.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery


def start(spark: SparkSession, folder: str) -> StreamingQuery:
    """Start the query."""
    clicks = spark.readStream.schema("at TIMESTAMP, user STRING").option("maxFilesPerTrigger", 1).json(f"{folder}/clicks")
    counts = clicks.withWatermark("at", "1 minute").groupBy(f.window("at", "10 minutes"), "user").agg(f.count("*").alias("clicks"))

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").json(f"{folder}/counts/v1-{batch_id}")

    writer = counts.writeStream.queryName("counts").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.foreachBatch(write).start()


if __name__ == "__main__":
    start(SparkSession.builder.appName("clicks-v1").getOrCreate(), sys.argv[1]).awaitTermination()
