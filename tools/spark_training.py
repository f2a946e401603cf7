"""What a test of a streaming query makes Java load: sources, windows, state of both providers, foreachBatch. Run by `spark_java`."""

import json
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def collect(batch: DataFrame, _: int) -> None:
    """Do what the tests' sinks do."""
    batch.collect()


with tempfile.TemporaryDirectory() as folder:
    source = Path(folder, "input")
    source.mkdir()
    for number in range(2):
        (source / f"{number}.json").write_text(json.dumps({"id": number, "key": "a", "at": f"2026-01-01T00:0{number}:00Z"}))
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for provider in (None, PROVIDER):
        if provider:
            spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        events = spark.readStream.schema("id long, key string, at timestamp").option("maxFilesPerTrigger", 1).json(str(source))
        counted = (
            events.withWatermark("at", "10 seconds").groupBy(F.window("at", "20 seconds"), "key").agg(F.collect_list("id"), F.count("*"))
        )
        writer = counted.writeStream.foreachBatch(collect).trigger(availableNow=True)
        writer.option("checkpointLocation", f"{folder}/{provider}").start().awaitTermination()
    spark.stop()
