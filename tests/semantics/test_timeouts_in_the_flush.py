"""A function that is called with rows in the flush, where the watermark is at the end of time and Spark refuses every timeout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout
from spark_drain_store import DrainState

from tests.semantics import user_code
from tests.semantics.warm import Application, Batches, Event, Input, read_all

pytestmark = pytest.mark.spark

_WITHIN = "e.id = c.id AND c.at BETWEEN e.at AND e.at + INTERVAL 20 SECONDS"
_EVENTS = [Event(number, "ab"[number % 2], number) for number in range(6)]


@pytest.fixture
def app(spark: SparkSession, tmp_path: Path) -> Iterator[Application]:
    """An application that is closed again."""
    app = Application(spark, tmp_path / "checkpoints")
    yield app
    app.close()


def _visits(spark: SparkSession, folder: Path, function: Any) -> DataFrame:
    """Return events that are held back by a join, whose unmatched rows come in the flush, counted by a function with timeouts."""
    events, clicks = Input(spark, folder / "events"), Input(spark, folder / "clicks")
    events.add(_EVENTS)
    clicks.add([Event(100, "c", 0)])
    joined = events.stream().alias("e").join(clicks.stream().alias("c"), F.expr(_WITHIN), "left_outer").select("e.id", "e.key", "e.at")
    return joined.groupBy("key").applyInPandasWithState(
        function, user_code.SCHEMA, "ids STRING", "append", GroupStateTimeout.EventTimeTimeout
    )


def test_a_timeout_in_the_flush_fails_by_name(spark: SparkSession, app: Application, tmp_path: Path) -> None:
    read_all(app.start(_visits(spark, tmp_path, user_code.until_event_time), Batches()))
    with app.user_waits():
        drain_id = app.ask()
        report = app.answer(drain_id, DrainState.STALLED)
        assert "is_drain_pane()" in report.message
        assert "`python -m spark_drain_agent recover`" in report.message
        (query,) = report.queries
        assert any("timeouts in event time" in warning for warning in query.warnings)
        app.channel.requests.write({drain_id: None})
        assert "is_drain_pane()" in app.answer(drain_id, DrainState.FAILED, patient=True).message


def test_a_function_that_sets_no_timeout_in_the_flush_loses_nothing(spark: SparkSession, app: Application, tmp_path: Path) -> None:
    sink = Batches()
    read_all(app.start(_visits(spark, tmp_path, user_code.until_event_time_or_drain), sink))
    app.drain()
    assert {key: set(ids.split()) for key, ids in sink.drained} == {"a": {"0", "2", "4"}, "b": {"1", "3", "5"}}
    assert len(sink.written) == 2
