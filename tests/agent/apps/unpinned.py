"""A batch that waits for ``go``, then stops one query and starts another one. Usage: unpinned.py BASE."""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import generation

from tests.agent.apps.sinks import read

base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()


def noop(name: str) -> None:
    """Start a query that writes nothing."""
    writer = read(spark, base).writeStream.queryName(name).format("noop")
    queries[name] = writer.option("checkpointLocation", str(base / "checkpoints" / name)).start()


def each(batch: DataFrame, batch_id: int) -> None:
    """Stop and start queries in the first batch."""
    if batch_id == 0:
        try:
            generation()
        except RuntimeError as error:
            (base / "told").write_text(str(error))
        (base / "began").touch()
        give_up = time.monotonic() + 200
        while not (base / "go").exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        queries["stopped"].stop()
        noop("started")


queries: dict[str, StreamingQuery] = {}
noop("stopped")
queries["stopped"].processAllAvailable()
queries["batching"] = (
    read(spark, base)
    .writeStream.queryName("batching")
    .option("checkpointLocation", str(base / "checkpoints/batching"))
    .foreachBatch(each)
    .start()
)
queries["batching"].awaitTermination()
