"""A query that waits for ``go``, and one that is started in the drain, whose default folder changes then. Usage: put_off.py BASE."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.agent.apps.sinks import read

_FOLDER = "spark.sql.streaming.checkpointLocation"

base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
steady = read(spark, base).writeStream.queryName("steady").format("noop")
steady_query = steady.option("checkpointLocation", str(base / "checkpoint")).start()
steady_query.processAllAvailable()
(base / "ready").touch()
give_up = time.monotonic() + 200
while not (base / "go").exists() and time.monotonic() < give_up:
    time.sleep(0.05)
spark.conf.set(_FOLDER, str(base / "then"))
bounded = read(spark, base).writeStream.queryName("bounded").trigger(availableNow=True).start(str(base / "bounded"), format="json")
spark.conf.set(_FOLDER, str(base / "later"))
(base / "started").touch()
bounded.awaitTermination()
(base / "ended").touch()
