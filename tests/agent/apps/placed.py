"""A stateful query whose state is on the executors: each id goes out once. Usage: placed.py BASE."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.agent.apps.sinks import read, to_files

base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
once = read(spark, base).withWatermark("at", "1 day").dropDuplicates(["id", "at"])
query = (
    once.writeStream.option("checkpointLocation", str(base / "checkpoint")).foreachBatch(to_files(base / "out")).start(queryName="placed")
)
query.awaitTermination()
(base / "main-returned").touch()
