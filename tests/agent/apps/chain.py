"""Three queries, each reading the folder that the one before it writes: windows of one, five and fifteen minutes.

Usage: chain.py BASE. The file BASE/kill-at names a point of a drain at which driver and JVM are killed.
"""

import os
import signal
import sys
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import milestones

from tests.agent.apps.sinks import counted, read, to_files

ROWS = "window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, ids ARRAY<LONG>, count LONG"


def again(spark: SparkSession, folder: Path, width: str) -> DataFrame:
    """Return wider windows of the windows in a folder."""
    rows = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1).json(str(folder)).withColumn("at", F.col("window.start"))
    grouped = rows.withWatermark("at", "30 seconds").groupBy(F.window("at", width))
    return grouped.agg(F.flatten(F.collect_list("ids")).alias("ids"), F.sum("count").alias("count"))


def start(spark: SparkSession, base: Path) -> list[StreamingQuery]:
    """Start all three, the last one first."""
    queries = []
    for name, frame in (
        ("third", again(spark, base / "second", "15 minutes")),
        ("second", again(spark, base / "first", "5 minutes")),
        ("first", counted(read(spark, base))),
    ):
        writer = frame.writeStream.queryName(name).option("checkpointLocation", str(base / f"checkpoints/{name}"))
        if name == "third":
            queries.append(writer.foreachBatch(to_files(base / "out")).start())
        else:
            queries.append(writer.start(str(base / name), format="json"))
    return queries


def kill_at(wanted: str) -> None:
    """Kill the JVM and this process at a point of a drain."""

    def look(point: str) -> None:
        if point == wanted:
            gateway = SparkContext._gateway
            assert gateway is not None
            os.kill(gateway.proc.pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    milestones.observe(look)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if (folder / "kill-at").exists():
        kill_at((folder / "kill-at").read_text())
    for part in ("first", "second"):
        (folder / part).mkdir(exist_ok=True)
    start(SparkSession.builder.getOrCreate(), folder)
    SparkSession.builder.getOrCreate().streams.awaitAnyTermination()
