"""Two queries, each started and awaited by a thread of its own; the second one takes its time. Usage: pool.py BASE [any]."""

import sys
import threading
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

base, *any_of_them = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").getOrCreate()


def run(name: str, seconds: float) -> None:
    """Start a query after so many seconds, and wait for its end."""
    time.sleep(seconds)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 1).load()
    counted = rows.withWatermark("timestamp", "10 seconds").groupBy(F.window("timestamp", "1 hour")).count()
    counted.writeStream.queryName(name).format("noop").option("checkpointLocation", f"{base}/{name}").start().awaitTermination()


threads = [threading.Thread(target=run, args=how) for how in (("first", 1.0), ("second", 15.0))]
for thread in threads:
    thread.start()
if any_of_them:
    spark.streams.awaitAnyTermination()
for thread in threads:
    thread.join()
