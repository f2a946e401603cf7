"""The pipeline under test: counts numbered events per window; version 2 has another key, window, schema and number of partitions.

Usage: app.py INPUT BASE VERSION. The sink is idempotent: one file per query id and batch id, replaced as a whole. BASE/shape.json may
change windows and watermark.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent import is_drain_pane

source, base, version = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
shape: dict[str, Any] = {"delay": 30, "width": {"v1": 60, "v2": 45}, "sessions": False}
if (base / "shape.json").exists():
    shape |= json.loads((base / "shape.json").read_text())
out = base / "out"
out.mkdir(exist_ok=True)


def crash(point: str) -> None:
    if os.environ.get("LEDGER_CRASH") == point and is_drain_pane():
        os.killpg(0, signal.SIGKILL)


def hesitate() -> None:
    (base / "writers").open("a").write(f"{os.getpid()}\n")
    while (base / "hesitate").exists():
        time.sleep(0.05)


def write(batch: DataFrame, batch_id: int) -> None:
    crash("before-sink-write")
    if is_drain_pane():
        hesitate()
    query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [{"version": version, "ids": row["ids"], "count": row["count"], "drain_pane": is_drain_pane()} for row in batch.collect()]
    part = out / f".{query_id}-{batch_id}"
    part.write_text(json.dumps(rows))
    part.rename(out / f"{query_id}-{batch_id}.json")
    crash("after-sink-write")


spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "2" if version == "v1" else "3")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
events = (
    spark.readStream.schema("id long, key string, at timestamp")
    .option("maxFilesPerTrigger", "1" if version == "v1" else "8")
    .json(source)
    .withWatermark("at", f"{shape['delay']} seconds")
)
window = (F.session_window if shape["sessions"] else F.window)("at", f"{shape['width'][version]} seconds")
if version == "v1":
    grouped = events.groupBy(window, "key")
else:
    grouped = events.groupBy(window, (F.col("id") % 3).alias("third"), F.length("key").alias("width"))
counted = grouped.agg(F.collect_list("id").alias("ids"), F.count("*").alias("count"))
query = (
    counted.writeStream.queryName("ledger")
    .foreachBatch(write)
    .outputMode("append")
    .option("checkpointLocation", str(base / "checkpoint"))
    .start()
)
query.awaitTermination()
