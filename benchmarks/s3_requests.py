"""What a drain of a checkpoint in S3 asks of the store: python -m benchmarks.s3_requests [--keys N] [--objects N] [--slow].

Local Spark with two task slots, a sink that writes nothing, K open windows, a real S3 server, and a proxy that counts. Spark's own requests
are those of an ordinary batch of the same query, as which the flush batch counts. With ``--slow`` each request takes as long as one of a
store far away is assumed to take; with ``--objects`` the state has so many objects of earlier batches beside.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import attach
from spark_drain_agent.driver.attach import current_agent
from spark_drain_store import DrainNotification, open_channel
from spark_drain_store.drains import write_notification

from benchmarks.drain_time import PROVIDERS, wait_until_drained
from tests.support.s3_server import BUCKET, S3Server, confs, s3_running
from tools import jars

ASSUMED_SECONDS = {"PUT": 0.03, "GET": 0.015, "HEAD": 0.012, "LIST": 0.03, "COPY": 0.06, "DELETE": 0.025, "BULKDELETE": 0.08}
_PARTITIONS = 200


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


def measure(spark: SparkSession, s3: S3Server, store: str, base: Path, *, keys: int, objects: int) -> tuple[float, Counter[str], int]:
    """Return the seconds and requests of a drain, and how many requests an ordinary batch makes."""
    name, source = str(uuid.uuid4()), base / str(uuid.uuid4())
    _batch(spark, source, keys)
    read = spark.readStream.schema("id long, at timestamp").parquet(str(source)).withWatermark("at", "1 minute")
    counted = read.groupBy(F.window("at", "1 hour"), "id").count().writeStream.format("noop")
    query = counted.option("checkpointLocation", f"s3a://{BUCKET}/{name}").start()
    _idle(query, 0)
    before = len(s3.proxy.requests)
    _batch(spark, source, keys)
    _idle(query, 1)
    batch = sum(s3.proxy.counts(before).values())
    _add_objects(s3.folder / name, objects)
    channel, before, begun = open_channel(store), len(s3.proxy.requests), time.monotonic()
    notification = DrainNotification(drain_id=str(uuid.uuid4()), created_at=datetime.now(UTC), options={"afterDrain": "Keep"})
    write_notification(channel, notification)
    wait_until_drained(channel, notification.drain_id)
    seconds, counts = time.monotonic() - begun, s3.proxy.counts(before)
    channel.requests.write({notification.drain_id: None})
    query.awaitTermination(60)
    return seconds, counts, batch


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--objects", type=int, default=0)
    parser.add_argument("--slow", action="store_true")
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
        print("| state | way | drain s | requests | of an ordinary batch | beside it | kinds |\n|---|---|---|---|---|---|---|")
        for provider, class_name in PROVIDERS.items():
            spark.conf.set("spark.sql.streaming.stateStore.providerClass", class_name)
            for way in ("Auto", "WorkCopy"):
                spark.conf.set("spark.sparkdrain.flush", way)
                for warm in (False, True):
                    s3.proxy.latency = ASSUMED_SECONDS if options.slow and warm else {}
                    found = measure(spark, s3, store, Path(base), keys=options.keys, objects=options.objects if warm else 0)
                seconds, counts, batch = found
                kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
                total = sum(counts.values())
                print(f"| {provider} | {way} | {seconds:.2f} | {total} | {batch} | {total - batch} | {kinds} |", flush=True)
        s3.proxy.latency = {}
        spark.stop()


if __name__ == "__main__":
    main()
