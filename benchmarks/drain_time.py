"""How long a drain takes beside its flush batch: python -m benchmarks.drain_time [--hdfs] [--keys N ...] [--rounds N].

Local Spark with two task slots, a sink that writes nothing, K open windows; one row per state provider, number of keys and way to flush.
The checkpoint is on the local disk, or in a small HDFS on this machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import attach
from spark_drain_agent.driver.attach import current_agent
from spark_drain_store import DrainNotification, DrainReport, DrainState, open_channel
from spark_drain_store.drains import Drains, write_notification

from tests.support.hdfs import hdfs_running

PROVIDERS = {
    "HDFS": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "RocksDB": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
_POLL_SECONDS = 0.005


@dataclass(frozen=True)
class Drained:
    """One measured drain, in seconds."""

    total: float
    flush_batch: float

    @property
    def rest(self) -> float:
        """All but the flush batch."""
        return self.total - self.flush_batch


class FlushBatches:
    """Durations of the batches that this session ran, by their drained state: see `last`."""

    def __init__(self, spark: SparkSession) -> None:
        durations: list[float] = []
        self._durations = durations

        class Listener(StreamingQueryListener):
            def onQueryStarted(self, event: Any) -> None: ...  # noqa: N802
            def onQueryIdle(self, event: Any) -> None: ...  # noqa: N802
            def onQueryTerminated(self, event: Any) -> None: ...  # noqa: N802

            def onQueryProgress(self, event: Any) -> None:  # noqa: N802
                if any(operator.numRowsRemoved for operator in event.progress.stateOperators):
                    durations.append(event.progress.durationMs["triggerExecution"] / 1000)

        spark.streams.addListener(Listener())

    def last(self) -> float:
        """Return how long the newest batch took that removed state, and forget all."""
        until = time.monotonic() + 10
        while not self._durations and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        (duration,) = self._durations
        self._durations.clear()
        return duration


def measure(spark: SparkSession, store: str, source: Path, checkpoint: str, *, keys: int, flushes: FlushBatches) -> Drained:
    """Open ``keys`` windows, drain, and return the times."""
    query = _windows_open(spark, source, checkpoint, keys)
    channel = open_channel(store)
    notification = DrainNotification(drain_id=str(uuid.uuid4()), created_at=datetime.now(UTC), options={"afterDrain": "Keep"})
    begun = time.monotonic()
    write_notification(channel, notification)
    report = wait_until_drained(channel, notification.drain_id)
    total = time.monotonic() - begun
    removed = sum(operator.rows_before or 0 for operator in report.queries[0].operators)
    assert removed == keys, f"{removed} of {keys} windows were open"
    flush_batch = flushes.last()
    channel.requests.write({notification.drain_id: None})
    query.awaitTermination(60)
    return Drained(total, flush_batch)


def _windows_open(spark: SparkSession, source: Path, checkpoint: str, keys: int) -> StreamingQuery:
    spark.range(keys).withColumn("at", F.lit("2026-01-01 00:00:01").cast("timestamp")).coalesce(2).write.parquet(str(source))
    query = (
        spark.readStream.schema("id long, at timestamp")
        .parquet(str(source))
        .withWatermark("at", "1 minute")
        .groupBy(F.window("at", "1 hour"), "id")
        .count()
        .writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .start()
    )
    while query.lastProgress is None or query.lastProgress["stateOperators"][0]["numRowsTotal"] < keys or query.status["isTriggerActive"]:
        time.sleep(0.05)
    time.sleep(0.5)  # the drain of an idle query, not of a busy one
    return query


def wait_until_drained(channel: Any, drain_id: str) -> DrainReport:
    """Return the report of a drain that has ended well."""
    while True:
        report = Drains.read(channel).reports.get(drain_id)
        if report is not None and report.state is DrainState.DRAINED:
            return report
        assert report is None or report.state not in (DrainState.FAILED, DrainState.REJECTED, DrainState.STALLED), report
        time.sleep(_POLL_SECONDS)


def _shown(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, nargs="+", default=[10_000, 200_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hdfs", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-drain-benchmark-") as base, ExitStack() as stack:
        store = f"file:{base}/store"
        checkpoints = stack.enter_context(hdfs_running(Path(base))) if options.hdfs else f"file:{base}"
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "3g")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        attach(spark, store)
        agent = current_agent()
        assert agent is not None
        stack.enter_context(agent.gate.user_waits())  # as main does in awaitTermination
        flushes = FlushBatches(spark)
        print("| keys | state | way | drain s | flush batch s | the rest s | rest / flush batch |\n|---|---|---|---|---|---|---|")
        for keys in options.keys:
            for provider, class_name in PROVIDERS.items():
                spark.conf.set("spark.sql.streaming.stateStore.providerClass", class_name)
                found: dict[str, list[Drained]] = {"Auto": [], "WorkCopy": []}
                for number in range(options.rounds + 1):
                    for way, drains in found.items():
                        spark.conf.set("spark.sparkdrain.flush", way)
                        name = f"{keys}-{provider}-{way}-{number}"
                        drained = measure(spark, store, Path(base) / name, f"{checkpoints}/checkpoints/{name}", keys=keys, flushes=flushes)
                        if number:  # the first round warms up
                            drains.append(drained)
                for way, drains in found.items():
                    ratio = [drained.rest / drained.flush_batch for drained in drains]
                    columns = [_shown([getattr(drained, name) for drained in drains]) for name in ("total", "flush_batch", "rest")]
                    print(f"| {keys} | {provider} | {way} | {' | '.join(columns)} | {_shown(ratio)} |", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
