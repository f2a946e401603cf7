"""Two queries, each started and awaited by a thread of a pool; the second one takes its time. Usage: pool.py BASE."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

base = sys.argv[1]
spark = SparkSession.builder.master("local[2]").getOrCreate()


def run(name: str, seconds: float) -> None:
    """Start a query after so many seconds, and wait for its end."""
    time.sleep(seconds)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 1).load()
    counted = rows.withWatermark("timestamp", "10 seconds").groupBy(F.window("timestamp", "1 hour")).count()
    counted.writeStream.queryName(name).format("noop").option("checkpointLocation", f"{base}/{name}").start().awaitTermination()


with ThreadPoolExecutor(2) as pool:
    list(pool.map(run, ("first", "second"), (0.0, 5.0)))
