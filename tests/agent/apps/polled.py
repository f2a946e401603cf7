"""Windows, while other threads ask for the query's progress. Usage: polled.py BASE."""

import json
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.spark_internals.jvm_thread import in_one_jvm_thread

from tests.agent.apps.sinks import counted, read

base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()


def jvm_threads() -> set[int]:
    """Return the threads of the JVM that make this thread's calls, while another thread's call takes a while."""
    java = spark._jvm.java.lang.Thread  # type: ignore[union-attr]
    first = int(java.currentThread().getId())
    threading.Thread(target=java.sleep, args=(2000,)).start()
    time.sleep(1)
    return {first, int(java.currentThread().getId())}


def ask() -> None:
    """Ask without a pause, as a program with many metrics does."""
    while True:
        with suppress(Exception):  # it is stopped meanwhile
            asked.append((query.status, query.lastProgress))
        time.sleep(0.001)


def start() -> StreamingQuery:
    """Start the query."""
    windows = counted(read(spark, base)).writeStream.queryName("windows").format("json").option("path", str(base / "out"))
    return windows.trigger(processingTime="200 milliseconds").option("checkpointLocation", str(base / "checkpoint")).start()


with in_one_jvm_thread(spark.sparkContext), in_one_jvm_thread(spark.sparkContext):
    kept = jvm_threads()
(base / "threads").write_text(json.dumps({"kept": len(kept), "any": len(jvm_threads())}))
asked: deque[object] = deque(maxlen=1)
query = start()
for _ in range(4):
    threading.Thread(target=ask, daemon=True).start()
while True:
    query.awaitTermination()
    query = start()
