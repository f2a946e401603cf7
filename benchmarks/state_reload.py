"""What the state costs when an executor is replaced: python -m benchmarks.state_reload [--keys N ...] [--rounds N].

Two executors in processes of their own, two task slots each, and a query with K keys in the state of four partitions, on the local disk. In
each round a few ordinary batches of 1,000 known keys, then one executor is ended, and as soon as another one has taken its place the same
batch again: its partitions are read from the checkpoint where they run now.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.spark_internals.executor_pods import ExecutorPods
from spark_drain_agent.spark_internals.session import SparkInternals

from benchmarks.drain_time import PROVIDERS

_ORDINARY = 3
_BATCH_ROWS = 1000
_LOOK_SECONDS = 0.05
_MOST_SECONDS = 120.0


@dataclass(frozen=True)
class Round:
    """Seconds of batches around one replacement."""

    ordinary: float
    first: float
    second: float

    @property
    def ratio(self) -> float:
        """How much longer the first batch took than an ordinary one."""
        return self.first / self.ordinary


class Counted:
    """A running query that counts keys."""

    def __init__(self, spark: SparkSession, base: Path, keys: int) -> None:
        self._spark = spark
        self._source = base / "source"
        self._keys = keys
        self._write(spark.range(keys))
        counts = spark.readStream.schema("id long").parquet(str(self._source)).groupBy("id").count()
        self._query: StreamingQuery = (
            counts.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(base / "checkpoint")).start()
        )
        self._query.processAllAvailable()
        assert self._state_rows() == keys

    def batch(self) -> float:
        """Run one batch, and return its seconds."""
        before = self._batches()
        self._write(self._spark.range(min(self._keys, _BATCH_ROWS)))
        self._query.processAllAvailable()
        (new,) = self._batches().keys() - before.keys()
        return self._batches()[new]

    def stop(self) -> None:
        """End the query."""
        self._query.stop()

    def _write(self, rows: DataFrame) -> None:
        rows.coalesce(1).write.mode("append").parquet(str(self._source))

    def _batches(self) -> dict[int, float]:
        """Return the seconds of each batch that had rows."""
        found = (each for each in self._query.recentProgress if each["numInputRows"])
        return {each["batchId"]: each["durationMs"]["triggerExecution"] / 1000 for each in found}

    def _state_rows(self) -> int:
        return max(int(each["stateOperators"][0]["numRowsTotal"]) for each in self._query.recentProgress if each["stateOperators"])


def replace_one(spark: SparkSession) -> None:
    """End the executor that is there for longest, and wait until another one has come."""
    internals = SparkInternals(spark)
    before = _ids(internals)
    ExecutorPods(internals).kill(min(before, key=int))
    until = time.monotonic() + _MOST_SECONDS
    while len(_ids(internals) - before) != 1 or len(_ids(internals)) != len(before):
        assert time.monotonic() < until, "no other executor has come"
        time.sleep(_LOOK_SECONDS)


def _ids(internals: SparkInternals) -> set[str]:
    return {executor_id for executor_id, _ in internals.executors()}


def measure(spark: SparkSession, base: Path, keys: int, rounds: int) -> list[Round]:
    """Return the rounds of one query."""
    counted = Counted(spark, base, keys)
    found = []
    for _ in range(rounds + 1):
        ordinary = statistics.median([counted.batch() for _ in range(_ORDINARY)])
        replace_one(spark)
        found.append(Round(ordinary, counted.batch(), counted.batch()))
    counted.stop()
    return found[1:]  # the first round warms up


def _shown(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, nargs="+", default=[100, 10_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-drain-benchmark-") as folder:
        spark = (
            SparkSession.builder.master("local-cluster[2,2,3072]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.executor.memory", "3072m")
            .config("spark.sql.shuffle.partitions", "4")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        print(
            "| keys | state | ordinary batch s | first batch after s | second s | first / ordinary |\n|---|---|---|---|---|---|", flush=True
        )
        for keys in options.keys:
            for provider, class_name in PROVIDERS.items():
                spark.conf.set("spark.sql.streaming.stateStore.providerClass", class_name)
                rounds = measure(spark, Path(folder) / f"{keys}-{provider}", keys, options.rounds)
                columns = [_shown([getattr(each, name) for each in rounds]) for name in ("ordinary", "first", "second", "ratio")]
                print(f"| {keys:,} | {provider} | {' | '.join(columns)} |", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
