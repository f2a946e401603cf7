"""When did somebody stop watching? Sessions of events per play, five minutes apart at most, from a folder of JSON files into another.

A drain ends every open session, and somebody may still be watching: such a row says that it is tentative. Usage: pipeline.py FOLDER.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import generation, is_drain_pane


def start(spark: SparkSession, folder: str) -> StreamingQuery:
    """Start the query."""
    events = spark.readStream.schema("at TIMESTAMP, play STRING").option("maxFilesPerTrigger", 1).json(f"{folder}/events")
    sessions = (
        events.withWatermark("at", "1 minute").groupBy(f.session_window("at", "5 minutes"), "play").agg(f.max("at").alias("finished"))
    )
    tentative = f.udf(lambda _: is_drain_pane(), "boolean")

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").json(f"{folder}/sessions/{generation()}-{batch_id}")

    rows = sessions.select("play", "finished", tentative("play").alias("tentative"))
    writer = rows.writeStream.queryName("sessions").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.foreachBatch(write).start()


if __name__ == "__main__":
    start(SparkSession.builder.appName("video-sessions").getOrCreate(), sys.argv[1]).awaitTermination()
