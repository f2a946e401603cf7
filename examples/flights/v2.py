"""Count flights and sum their delays and distances per airport, carrier and 6-hour window: the next version of v1.

Neither the grouping key nor the aggregates fit the state that v1 keeps, yet it is started on the same checkpoint location.
"""

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

FLIGHT = "scheduled TIMESTAMP, carrier STRING, origin STRING, distance LONG, departureDelay DOUBLE"


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, help="Kafka bootstrap servers, HOST:PORT")
    parser.add_argument("--input", default="flights", help="topic to read")
    parser.add_argument("--output", default="flight-counts", help="topic to write")
    parser.add_argument("--checkpoint", required=True, help="checkpoint location, shared by driver and executors")
    parser.add_argument("--max-offsets", type=int, default=8000, help="most records per batch")
    parser.add_argument(
        "--idempotent",
        action="store_true",
        help="write each row under a key that a repeated batch uses again, so that the last value per key is the truth",
    )
    return parser.parse_args()


def main() -> None:
    """Run until stopped."""
    options = arguments()
    spark = SparkSession.builder.appName("flights-v2").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    flights = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", options.bootstrap)
        .option("subscribe", options.input)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", options.max_offsets)
        .load()
        .select(f.from_json(f.col("value").cast("string"), FLIGHT).alias("flight"))
        .select("flight.*")
    )
    summaries = (
        flights.withWatermark("scheduled", "2 days")
        .groupBy(f.window("scheduled", "6 hours"), "origin", "carrier")
        .agg(
            f.count(f.lit(1)).alias("flights"),
            f.sum("departureDelay").alias("departureDelay"),
            f.sum("distance").alias("distance"),
        )
        .select(
            "carrier",
            f.to_json(
                f.struct(
                    f.lit("v2").alias("version"),
                    f.col("window.start").alias("windowStart"),
                    f.col("window.end").alias("windowEnd"),
                    "origin",
                    "carrier",
                    "flights",
                    "departureDelay",
                    "distance",
                )
            ).alias("value"),
            f.col("window.start").alias("window_start"),
            "origin",
        )
    )

    def overwrite(batch: DataFrame, batch_id: int) -> None:
        # Version and batch id are part of the key: only the same batch, executed again, may replace what it wrote before.
        keyed = batch.withColumn("key", f.concat_ws("/", f.lit("v2"), f.lit(batch_id), "window_start", "origin", "carrier"))
        to_kafka = keyed.select("key", "value").write.format("kafka").option("kafka.bootstrap.servers", options.bootstrap)
        to_kafka.option("topic", options.output).save()

    rows = summaries if options.idempotent else summaries.select(summaries.carrier.alias("key"), "value")
    writer = rows.writeStream.queryName("flights").outputMode("append").trigger(processingTime="2 seconds")
    writer = writer.option("checkpointLocation", options.checkpoint)
    if options.idempotent:
        writer = writer.foreachBatch(overwrite)
    else:
        writer = writer.format("kafka").option("kafka.bootstrap.servers", options.bootstrap).option("topic", options.output)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
