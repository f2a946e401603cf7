"""Two windowed queries whose flush batch waits on the executors: ``awake`` flushes itself, ``asleep`` is flushed on a work copy.

Usage: lost.py BASE. While BASE/hold exists, each task of a flush batch waits and is named in BASE/held, after the process of its executor.
While BASE/hold-report exists, the drain waits with the executors' reports, and says so with BASE/reporting.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from spark_drain_agent import is_drain_pane, milestones

from tests.agent.apps.sinks import counted, read, to_files

base = Path(sys.argv[1])
(base / "held").mkdir()


def wait_while(obstacle: Path) -> None:
    while obstacle.exists():
        time.sleep(0.05)


def hold(pane: bool) -> bool:
    task = TaskContext.get()
    if pane and task is not None and (base / "hold").exists():
        # This worker was forked by Spark's daemon, whose parent is the executor.
        parent = subprocess.run(["ps", "-o", "ppid=", "-p", str(os.getppid())], capture_output=True, text=True, check=True)
        query = task.getLocalProperty("sql.streaming.queryId")
        (base / "held" / f"{int(parent.stdout)}.{query}.{task.partitionId()}").touch()
        wait_while(base / "hold")
    return pane


def hold_report(point: str) -> None:
    if point == "reporting":
        (base / "reporting").touch()
        wait_while(base / "hold-report")
        while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 2:  # the driver is one of them
            time.sleep(0.05)


milestones.observe(hold_report)
spark = SparkSession.builder.getOrCreate()
held = F.udf(lambda _: hold(is_drain_pane()), "boolean")
for name, interval in (("awake", "0 seconds"), ("asleep", "1 day")):
    counted(read(spark, base), (F.col("id") % 4).alias("quarter")).withColumn("held", held("count")).writeStream.queryName(name).trigger(
        processingTime=interval
    ).option("checkpointLocation", str(base / "checkpoints" / name)).foreachBatch(to_files(base / "out" / name)).start()
spark.streams.awaitAnyTermination()
