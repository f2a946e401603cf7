"""What a query's own code and its plan see of the clock in the flush batch: the real time; only the watermark goes to the end of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import LongType
from spark_drain_agent import is_drain_pane
from spark_drain_agent.checkpoint.logs import END_OF_TIMERS_MS
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF

from tests.semantics import user_code
from tests.semantics.operator_table import EVENTS, FIRST, SECOND
from tests.semantics.warm import Application, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[[], Application]


class Frames:
    """A foreachBatch sink that takes each batch to pandas."""

    def __init__(self) -> None:
        self.drained: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []

    def __call__(self, batch: DataFrame, _: int) -> None:
        frame: pd.DataFrame = batch.toPandas()
        rows = frame.to_dict("records")
        self.rows += rows
        if is_drain_pane():
            self.drained += rows


def _seconds(times: pd.Series) -> pd.Series:
    return times.astype("datetime64[ns]").astype("int64") // 1_000_000_000


seconds = pandas_udf(_seconds, LongType())  # type: ignore[call-overload]  # pyspark's overloads know no plain functions


def _clocks(frame: DataFrame) -> DataFrame:
    return frame.withColumns(
        {
            "timestamp": F.current_timestamp(),
            "now": F.expr("now()"),
            "date": F.current_date(),
            "seconds": seconds(F.current_timestamp()),
        }
    )


@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_windows_are_emitted_at_the_real_time(flush: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(FLUSH_CONF, flush)
    events, sink = Input(spark, tmp_path / "events"), Frames()
    events.add(FIRST, SECOND)
    counted = events.stream().groupBy(F.window("at", "10 seconds")).count()
    recent = counted.where("window.end > current_timestamp() - interval 10000 days")
    app, begun = application(), time.time()
    query = app.start(_clocks(recent).select("count", "timestamp", "now", "date", "seconds"), sink)
    read_all(query)
    flushing = time.time()
    report = app.drain()
    assert sum(row["count"] for row in sink.rows) == len(EVENTS)
    assert not [warning for warning in report.warnings if "clock" in warning]
    for rows, since in ((sink.rows, begun), (sink.drained, flushing)):
        assert rows
        for row in rows:
            assert since - 1 < row["seconds"] < time.time()
            assert since - 1 < row["now"].tz_localize("UTC").timestamp() < time.time()  # not the batch's time: Spark looks at its own clock
            assert int(row["timestamp"].tz_localize("UTC").timestamp()) == row["seconds"]
            assert row["date"] == row["timestamp"].date()


def until_processing_time(key: tuple[Any, ...], frames: Any, state: GroupState) -> Any:
    """Add to the ids what the state says of both clocks."""
    for frame in user_code.until_processing_time(key, frames, state):
        frame["ids"] += f" {state.getCurrentProcessingTimeMs()} {state.getCurrentWatermarkMs()}"
        yield frame


def test_timers_of_the_clock_fire_at_an_end_that_pandas_can_hold(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Frames()
    events.add(FIRST, SECOND)
    frame = (
        events.stream()
        .groupBy("key")
        .applyInPandasWithState(until_processing_time, user_code.SCHEMA, "ids STRING", "append", GroupStateTimeout.ProcessingTimeTimeout)
    )
    app = application()
    query = app.start(frame.withColumn("timestamp", F.current_timestamp()), sink)
    read_all(query, len(EVENTS))
    report = app.drain()
    (warning,) = [warning for warning in report.warnings if "clock" in warning]
    assert "processing-time timers" in warning
    assert "2262-01-01" in warning
    assert sorted(row["key"] for row in sink.drained) == ["a", "b", "c"]
    for row in sink.drained:
        assert row["ids"].endswith(f" {END_OF_TIMERS_MS} 253402300799000")
        assert row["timestamp"] == pd.Timestamp("2262-01-01")
