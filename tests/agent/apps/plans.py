"""Writes to BASE/plans.json which stateful operators the agent sees in one streaming plan of each kind.

Usage: plans.py BASE RUN...; those named are run as well, to write what Spark itself reports for them.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.apps.sinks import read

base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
events = read(spark, base)
timed = events.withWatermark("at", "10 minutes")
timed.createOrReplaceTempView("timed")
static = spark.createDataFrame([(1, "one")], "id LONG, name STRING")


def same(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    yield from frames


def with_state(timeout: str) -> DataFrame:
    return timed.groupBy("id").applyInPandasWithState(same, "id LONG, at TIMESTAMP", "n LONG", "append", timeout)


def frames_as_they_are(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def table_as_it_is(table: pa.Table) -> pa.Table:
    return table


SAME_ID = "a.id = b.id"
BOTH = "a.at BETWEEN b.at AND b.at + INTERVAL 1 HOUR"
NO_EARLIER, NO_LATER = "a.at >= b.at", "a.at <= b.at + INTERVAL 1 HOUR"


def joined(*conditions: str, how: str = "inner", left: DataFrame = timed, right: DataFrame = timed) -> DataFrame:
    both = left.alias("a").join(right.alias("b"), F.expr(" AND ".join(conditions)), how)
    return both.select("a.id") if how == "left_semi" else both.select("a.id", "b.at")


def counted_windows(seconds: int) -> DataFrame:
    return timed.select("id", F.window("at", f"{seconds} seconds").alias("at"))


plans = {
    "projection": timed.select("id"),
    "window": timed.groupBy(F.window("at", "5 minutes")).count(),
    "window-and-key": timed.groupBy("id", F.window("at", "5 minutes", "1 minute")).count(),
    "session-window": timed.groupBy(F.session_window("at", "5 minutes"), "id").count(),
    "event-time-itself": timed.groupBy("at").count(),
    "window-without-watermark": events.groupBy(F.window("at", "5 minutes")).count(),
    "key-only": timed.groupBy("id").count(),
    "window-of-window": timed.groupBy(F.window("at", "5 minutes")).count().groupBy(F.window("window", "1 hour")).count(),
    "window-in-sql": spark.sql("SELECT window(at, '5 minutes') AS w, count(*) AS n FROM timed GROUP BY 1"),
    "distinct-in-sql": spark.sql("SELECT DISTINCT id FROM timed"),
    "distinct-event-times-in-sql": spark.sql("SELECT DISTINCT at FROM timed"),
    "deduplicated": timed.dropDuplicates(["id"]),
    "deduplicated-by-event-time": timed.dropDuplicates(["id", "at"]),
    "deduplicated-within-watermark": timed.dropDuplicatesWithinWatermark(["id"]),
    "joined-with-static": timed.join(static, "id").select("id", "name"),
    "joined-with-static-counts": timed.join(static.groupBy("id").count(), "id"),
    "joined": joined(SAME_ID, BOTH),
    "joined-without-watermark": joined(SAME_ID, left=events, right=events),
    "joined-unbounded": joined(SAME_ID),
    "joined-bounded-above-only": joined(SAME_ID, NO_LATER),
    "joined-bounded-below-only": joined(SAME_ID, NO_EARLIER),
    "joined-bounded-with-one-watermark": joined(SAME_ID, BOTH, right=events),
    "joined-bounded-by-a-filter": timed.alias("a").join(timed.alias("b"), F.expr(SAME_ID)).where(BOTH).select("a.id"),
    "joined-on-event-time": joined(SAME_ID, "a.at = b.at"),
    "joined-on-event-time-with-one-watermark": joined(SAME_ID, "a.at = b.at", right=events),
    "joined-on-windows": joined(SAME_ID, "a.at = b.at", left=counted_windows(5), right=counted_windows(5)),
    "joined-on-the-start-of-windows": joined(SAME_ID, "a.at.start = b.at.start", left=counted_windows(5), right=counted_windows(5)),
    "joined-left": joined(SAME_ID, BOTH, how="left_outer"),
    "joined-left-bounded-above-only": joined(SAME_ID, NO_LATER, how="left_outer"),
    "joined-right": joined(SAME_ID, BOTH, how="right_outer"),
    "joined-right-bounded-below-only": joined(SAME_ID, NO_EARLIER, how="right_outer"),
    "joined-full": joined(SAME_ID, BOTH, how="full_outer"),
    "joined-semi": joined(SAME_ID, BOTH, how="left_semi"),
    "joined-semi-bounded-above-only": joined(SAME_ID, NO_LATER, how="left_semi"),
    "window-of-joined": joined(SAME_ID, BOTH).groupBy(F.window("at", "5 minutes")).count(),
    "hours-that-are-no-windows": timed.groupBy(F.date_trunc("hour", "at")).count(),
    "start-of-windows": timed.groupBy(F.window("at", "5 minutes").alias("w")).count().groupBy("w.start").count(),
    "event-time-renamed": timed.withColumnRenamed("at", "then").groupBy("then").count(),
    "event-time-in-a-struct": timed.select(F.struct("at", "id").alias("both")).groupBy("both.at").count(),
    "limited": timed.limit(10),
    "state-without-timeout": with_state(GroupStateTimeout.NoTimeout),
    "state-with-event-time-timeout": with_state(GroupStateTimeout.EventTimeTimeout),
    "state-with-processing-time-timeout": with_state(GroupStateTimeout.ProcessingTimeTimeout),
    "pandas-per-key": timed.groupBy("id").applyInPandas(frames_as_they_are, "id LONG, at TIMESTAMP"),
    "arrow-per-key": timed.groupBy("id").applyInArrow(table_as_it_is, "id LONG, at TIMESTAMP"),
    "union-of-windows": timed.groupBy(F.window("at", "5 minutes")).count().union(timed.groupBy(F.window("at", "1 hour")).count()),
}
internals = SparkInternals(spark)
found: dict[str, dict[str, Any]] = {}
for name, plan in plans.items():
    captured = internals.capture(plan.writeStream)
    operators = internals.stateful_operators(captured)
    found[name] = {"planned": [[operator.name, operator.watermarked, operator.timers] for operator in operators]}
for name in sys.argv[2:]:
    query = plans[name].writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    progress = query.lastProgress
    assert progress is not None
    found[name]["running"] = [operator["operatorName"] for operator in progress["stateOperators"]]
(base / "plans.json").write_text(json.dumps(found))
