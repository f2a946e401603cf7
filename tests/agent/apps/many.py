"""Several queries in one application: windows, deduplication, file sink; and, as ``with-strays``, two that cannot be drained.

Usage: many.py BASE VERSION [with-strays]. Version 2 has another key and window, and so another state schema.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.agent.apps.sinks import counted, read, to_files

base, version, *strays = Path(sys.argv[1]), *sys.argv[2:]
spark = SparkSession.builder.getOrCreate()
events = read(spark, base)

if version == "v1":
    keys, width = [], "60 seconds"
else:
    keys, width = [(F.col("id") % 3).alias("third")], "45 seconds"

counted(events, *keys, width=width).writeStream.queryName("counts").option(
    "checkpointLocation", str(base / "checkpoints/counts")
).foreachBatch(to_files(base / "out/counts", block=base / "block")).start()
events.dropDuplicates(["id"]).writeStream.queryName("dedup").option("checkpointLocation", str(base / "checkpoints/dedup")).foreachBatch(
    to_files(base / "out/dedup")
).start()
events.select("id").writeStream.queryName("files").option("checkpointLocation", str(base / "checkpoints/files")).start(
    str(base / "out/files"), format="json"
)
if strays:
    events.writeStream.queryName("nowhere").format("noop").trigger(processingTime="3 seconds").start()
    counted(events).writeStream.queryName("memories").format("memory").trigger(processingTime="3 seconds").option(
        "checkpointLocation", str(base / "checkpoints/memories")
    ).start()
spark.streams.awaitAnyTermination()
(base / "main-returned").touch()
