"""A query, and once there is ``go`` another one, which a drain puts off; its default folder changes then. Usage: put_off.py BASE."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.agent.apps.sinks import read

_FOLDER, _POOL = "spark.sql.streaming.checkpointLocation", "spark.scheduler.pool"

base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLocalProperty(_POOL, "reports")
steady = read(spark, base).writeStream.queryName("steady").format("noop")
steady_query = steady.option("checkpointLocation", str(base / "checkpoint")).start()
steady_query.processAllAvailable()
(base / "ready").touch()
give_up = time.monotonic() + 200
seen = set()
while not (base / "go").exists() and time.monotonic() < give_up:
    seen.add(str(spark.sparkContext.getLocalProperty(_POOL)))
    time.sleep(0.01)
(base / "pools").write_text(" ".join(seen))
spark.conf.set(_FOLDER, str(base / "then"))
bounded = read(spark, base).writeStream.queryName("bounded").trigger(availableNow=True).start(str(base / "bounded"), format="json")
spark.conf.set(_FOLDER, str(base / "later"))
(base / "started").touch()
bounded.awaitTermination()
