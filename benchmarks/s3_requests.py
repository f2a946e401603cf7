"""What a drain of a checkpoint in S3 costs: python -m benchmarks.s3_requests [--keys N] [--objects N] [--rounds N] [--fast].

Local Spark with two task slots, a sink that writes nothing, K open windows, a real S3 server, and a proxy that counts. Each request takes
as long as one of a store far away is assumed to take, unless ``--fast``. With ``--objects`` the state has many objects of earlier batches
beside. What Spark needs for the flush batch is told apart from the rest. In the running query it is counted as the requests of an ordinary
batch of the same query, on a work copy as all of the query that Spark starts there.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import attach
from spark_drain_agent.driver.attach import current_agent
from spark_drain_agent.milestones import observe
from spark_drain_store import DrainNotification, open_channel
from spark_drain_store.drains import write_notification

from benchmarks.drain_time import PROVIDERS, wait_until_drained
from tests.support.s3_server import BUCKET, S3Server, confs, s3_running
from tools import jars

ASSUMED_SECONDS = {"PUT": 0.03, "GET": 0.015, "HEAD": 0.012, "LIST": 0.03, "COPY": 0.06, "DELETE": 0.025, "BULKDELETE": 0.08}
_PARTITIONS = 200
_FLUSH = {"Auto": ("watermark-raised", "running-flush-committed"), "WorkCopy": ("flush-logged", "flush-committed")}
"""Milestones between which Spark runs the flush batch."""


@dataclass(frozen=True)
class Drained:
    """One measured drain: seconds and requests, and what of both are the flush batch's."""

    seconds: float
    flush_seconds: float
    requests: int
    flush_requests: int


class Milestones:
    """When a milestone was last passed, by the monotonic clock and by the number of requests before it."""

    def __init__(self, s3: S3Server) -> None:
        self.passed: dict[str, tuple[float, int]] = {}
        observe(lambda point: self.passed.update({point: (time.monotonic(), len(s3.proxy.requests))}))


def _batch(spark: SparkSession, source: Path, keys: int) -> None:
    rows = spark.range(keys).withColumn("at", F.lit("2026-01-01 00:00:01").cast("timestamp"))
    rows.coalesce(2).write.mode("append").parquet(str(source))


def _idle(query: StreamingQuery, batch: int) -> None:
    while (query.lastProgress or {"batchId": -1})["batchId"] < batch or query.status["isTriggerActive"]:
        time.sleep(0.05)
    time.sleep(1.0)


def _add_objects(folder: Path, objects: int) -> None:
    """Let the state have objects that are of no use any more, as a hundred retained batches leave them: before a newer snapshot."""
    (known,) = folder.glob("commits/1")
    for number in range(objects):
        partition = folder / f"state/0/{2 + number % _PARTITIONS}"
        if not partition.exists():
            partition.mkdir()
            shutil.copy2(known, partition / "2.snapshot")  # with what the server notes of an object
        (partition / f"{'0' * (number // _PARTITIONS + 1)}1.delta").write_text("")


def measure(
    spark: SparkSession, s3: S3Server, store: str, base: Path, milestones: Milestones, *, way: str, keys: int, objects: int
) -> Drained:
    """Open ``keys`` windows, drain, and return what it costs."""
    name, source = str(uuid.uuid4()), base / str(uuid.uuid4())
    _batch(spark, source, keys)
    read = spark.readStream.schema("id long, at timestamp").parquet(str(source)).withWatermark("at", "1 minute")
    counted = read.groupBy(F.window("at", "1 hour"), "id").count().writeStream.format("noop")
    query = counted.option("checkpointLocation", f"s3a://{BUCKET}/{name}").start()
    _idle(query, 0)
    before = len(s3.proxy.requests)
    _batch(spark, source, keys)
    _idle(query, 1)
    batch = len(s3.proxy.requests) - before
    _add_objects(s3.folder / name, objects)
    channel, before, begun = open_channel(store), len(s3.proxy.requests), time.monotonic()
    notification = DrainNotification(drain_id=str(uuid.uuid4()), created_at=datetime.now(UTC), options={"afterDrain": "Keep"})
    write_notification(channel, notification)
    wait_until_drained(channel, notification.drain_id)
    seconds, requests = time.monotonic() - begun, len(s3.proxy.requests) - before
    channel.requests.write({notification.drain_id: None})
    query.awaitTermination(60)
    (flush_begun, first), (flushed, last) = (milestones.passed[point] for point in _FLUSH[way])
    by_spark = [request for request in s3.proxy.requests[first:last] if "/_drain/lease" not in request.key]
    return Drained(seconds, flushed - flush_begun, requests, batch if way == "Auto" else len(by_spark))


def _shown(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--objects", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fast", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-drain-benchmark-") as base, ExitStack() as stack:
        (Path(base) / "s3").mkdir()
        s3 = stack.enter_context(s3_running(Path(base) / "s3"))
        store = f"file:{base}/store"
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.jars": ",".join(jars.s3a()),
        }
        spark = SparkSession.builder.master("local[2]").config(map={**settings, **confs(s3.proxy.port)}).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        attach(spark, store)
        agent = current_agent()
        assert agent is not None
        stack.enter_context(agent.gate.user_waits())  # as main does in awaitTermination
        milestones = Milestones(s3)
        print("| state | way | drain s | beside s | requests | beside |\n|---|---|---|---|---|---|")
        for provider, class_name in PROVIDERS.items():
            spark.conf.set("spark.sql.streaming.stateStore.providerClass", class_name)
            for way in _FLUSH:
                spark.conf.set("spark.sparkdrain.flush", way)
                found: list[Drained] = []
                for number in range(options.rounds + 1):
                    s3.proxy.latency = ASSUMED_SECONDS if number and not options.fast else {}
                    objects = options.objects if number else 0
                    drained = measure(spark, s3, store, Path(base), milestones, way=way, keys=options.keys, objects=objects)
                    found += [drained] if number else []  # the first one warms up
                seconds = [
                    _shown(each, 1) for each in ([item.seconds for item in found], [item.seconds - item.flush_seconds for item in found])
                ]
                requests = [
                    _shown([float(each) for each in values], 0)
                    for values in ([item.requests for item in found], [item.requests - item.flush_requests for item in found])
                ]
                print(f"| {provider} | {way} | {' | '.join(seconds)} | {' | '.join(requests)} |", flush=True)
        s3.proxy.latency = {}
        spark.stop()


if __name__ == "__main__":
    main()
