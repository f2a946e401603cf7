"""Sinks and windows that the applications share."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent import generation, is_drain_pane

_LONGEST_BLOCK_SECONDS = 200.0


def read(spark: SparkSession, base: Path) -> DataFrame:
    """Return the input, one file per batch."""
    return spark.readStream.schema("id LONG, at TIMESTAMP").option("maxFilesPerTrigger", 1).json(str(base / "input"))


def counted(events: DataFrame, *keys: Column, width: str = "60 seconds") -> DataFrame:
    """Return the ids and their number per window and keys."""
    grouped = events.withWatermark("at", "30 seconds").groupBy(F.window("at", width), *keys)
    return grouped.agg(F.collect_list("id").alias("ids"), F.count("*").alias("count"))


def _generation() -> int | None:
    try:
        return generation()
    except RuntimeError:  # without the agent nobody has counted
        return None


def to_files(folder: Path, *, block: Path | None = None, poison: Path | None = None) -> Callable[[DataFrame, int], None]:
    """Return a foreachBatch function that writes one file per query and batch, replaced when the batch is executed again.

    While the file ``block`` exists, a batch waits, and says so with ``<block>ed``; while ``poison`` exists, a drain pane fails.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def write(batch: DataFrame, batch_id: int) -> None:
        query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        told = {"window": None, "pane": is_drain_pane(), "generation": _generation()}
        rows = [json.dumps({**row.asDict(), **told}, default=str) for row in batch.collect()]
        if poison is not None and poison.exists() and is_drain_pane():
            raise RuntimeError("this window is poisonous")
        give_up = time.monotonic() + _LONGEST_BLOCK_SECONDS
        while block is not None and block.exists():
            assert time.monotonic() < give_up, "a test that failed must not keep its query from being stopped"
            block.with_name(block.name + "ed").touch()
            time.sleep(0.05)
        part = folder / f".{query_id}-{batch_id}"
        part.write_text("".join(f"{row}\n" for row in rows))
        part.rename(folder / f"{query_id}-{batch_id}.json")

    return write
