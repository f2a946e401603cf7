"""The pipeline under test: counts numbered events per window; version 2 has another key, window, schema and number of partitions.
Behind VERSION and a space may be an output mode.

Usage: app.py INPUT BASE VERSION, where BASE may be ".": its copies are the same version then, whose arguments and paths are equal.
BASE/files-per-batch says how many files a batch reads, by default one, and BASE/bucket where checkpoints are, by default in BASE; neither
is a file that counts as configuration. The sink is idempotent: one file per query id and batch id, replaced as a whole. BASE/shape.json
may change windows, watermark, and the names of the queries, each of which counts all events in a checkpoint of its own.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import is_drain_pane, milestones

source, base, version = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
version, _, mode = version.partition(" ")
shape: dict[str, Any] = {"delay": 30, "width": {"v1": 60, "v2": 45}, "sessions": False, "queries": ["ledger"]}
if (base / "shape.json").exists():
    shape |= json.loads((base / "shape.json").read_text())
per_batch, bucket = base / "files-per-batch", base / "bucket"
out = base / "out"
out.mkdir(exist_ok=True)


def hesitate() -> None:
    (base / "writers").open("a").write(f"{os.getpid()}\n")
    while (base / "hesitate").exists():
        time.sleep(0.05)


def writer(name: str) -> Callable[[DataFrame, int], None]:
    def write(batch: DataFrame, batch_id: int) -> None:
        pane = is_drain_pane()
        if pane:
            milestones.reached("before-sink-write")
            hesitate()
        query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        told = {"query": name, "version": version, "drain_pane": pane}
        rows = [{**row.asDict(), **told} for row in batch.select("ids", "count", "emitted").collect()]
        part = out / f".{query_id}-{batch_id}"
        part.write_text(json.dumps(rows))
        part.rename(out / f"{query_id}-{batch_id}.json")
        if pane:
            milestones.reached("after-sink-write")

    return write


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
    .option("maxFilesPerTrigger", per_batch.read_text() if per_batch.exists() else "1")
    .json(source)
    .withWatermark("at", f"{shape['delay']} seconds")
)
window = (F.session_window if shape["sessions"] else F.window)("at", f"{shape['width'][version]} seconds").alias("window")
if version == "v1":
    grouped = events.groupBy(window, "key")
else:
    grouped = events.groupBy(window, (F.col("id") % 3).alias("third"), F.length("key").alias("width"))
counted = (
    grouped.agg(F.collect_list("id").alias("ids"), F.count("*").alias("count"))
    .where("window.end > current_timestamp() - interval 10000 days")
    .withColumn("emitted", F.unix_timestamp(F.current_timestamp()))
)
queries: list[StreamingQuery] = []
failures: dict[str, str] = {}


def start(name: str) -> None:
    described = counted.writeStream.queryName(name).foreachBatch(writer(name)).outputMode(mode or "append")
    checkpoints = bucket.read_text() if bucket.exists() else f"{base.resolve()}/checkpoints"
    queries.append(described.option("checkpointLocation", f"{checkpoints}/{name}").start())


def note_failure(name: str, action: Callable[[], object]) -> None:
    """Let the other queries have their turn."""
    try:
        action()
    except Exception as error:
        failures[name] = f"{type(error).__name__}: {error}"[:1500]


for name in shape["queries"]:
    note_failure(name, partial(start, name))
milestones.reached("all-started")
for query in queries:
    note_failure(query.name, query.awaitTermination)
if failures:
    raise RuntimeError(json.dumps(failures))
