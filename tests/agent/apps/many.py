"""Several queries in one application: windows, deduplication, file sink; and, as ``with-strays``, two that cannot be drained.

Usage: many.py BASE VERSION [with-strays]. Version 2 has another key and window, and so another state schema.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from spark_drain_agent import DrainContext, is_drain_pane, on_drain

from tests.agent.apps.sinks import counted, read, to_files

base, version, *strays = Path(sys.argv[1]), *sys.argv[2:]
spark = SparkSession.builder.getOrCreate()
events = read(spark, base)

if version == "v1":
    keys, width = [], "60 seconds"
else:
    keys, width = [(F.col("id") % 3).alias("third")], "45 seconds"


@on_drain
def save(context: DrainContext) -> None:
    if (base / "veto").exists():
        raise RuntimeError("the model cannot be saved")
    tell("before", context)


@on_drain(when="after", timeout_seconds=0.5)
def tell_others(context: DrainContext) -> None:
    tell("after", context)
    time.sleep(60)


def tell(when: str, context: DrainContext) -> None:
    queries = {query.name: query.end_offsets for query in context.queries}
    (base / f"{when}.json").write_text(json.dumps({"uuid": context.drain_id, "mode": context.mode, "queries": queries}))


seen_by_udf = F.udf(lambda _: is_drain_pane(), "boolean")
windows = counted(events, *keys, width=width).withColumn("udf_pane", seen_by_udf("count"))
windows.writeStream.queryName("counts").option("checkpointLocation", str(base / "checkpoints/counts")).foreachBatch(
    to_files(base / "out/counts", block=base / "block")
).start()
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
