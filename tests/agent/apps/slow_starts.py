"""Two queries, the second of which takes its time; nothing is awaited before both run."""

import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

base = sys.argv[1]
spark = SparkSession.builder.master("local[2]").getOrCreate()
for name, seconds in (("first", 5.0), ("second", 0.0)):
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 1).load()
    counted = rows.withWatermark("timestamp", "10 seconds").groupBy(F.window("timestamp", "1 hour")).count()
    query = counted.writeStream.queryName(name).format("noop").option("checkpointLocation", f"{base}/{name}").start()
    time.sleep(seconds)
query.awaitTermination()
