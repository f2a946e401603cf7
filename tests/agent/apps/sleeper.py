"""A query that sleeps for ten minutes between batches, and a main that polls it, stops Spark and exits. Usage: sleeper.py BASE."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.agent.apps.sinks import counted, read, to_files

base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
query = (
    counted(read(spark, base))
    .writeStream.queryName("sleeper")
    .trigger(processingTime="10 minutes")
    .option("checkpointLocation", str(base / "checkpoint"))
    .foreachBatch(to_files(base / "out"))
    .start()
)
while query.isActive and not (base / "leave").exists():
    time.sleep(0.1)
(base / "left").write_text(str(query.isActive))
(base / "left").rename(base / "leaving")
query.stop()
spark.stop()
(base / "stopped").touch()
sys.exit(7)
