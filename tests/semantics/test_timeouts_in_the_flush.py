"""A function that is called with rows in the flush, where the watermark is at the end of time and Spark refuses every timeout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout
from spark_drain_agent.drain import after_commit
from spark_drain_agent.spark_internals.writer import SAME_VERSION_CONF
from spark_drain_store import DrainState

from tests.semantics import user_code
from tests.semantics.warm import PROVIDERS, Application, Batches, Event, Input, read_all
from tests.support.own_jvm import session_confs

pytestmark = pytest.mark.spark

_WITHIN = "e.id = c.id AND c.at BETWEEN e.at AND e.at + INTERVAL 20 SECONDS"
_EVENTS = [Event(number, "ab"[number % 2], number) for number in range(6)]
_ALL = {"a": {"0", "2", "4"}, "b": {"1", "3", "5"}}


@pytest.fixture
def app(spark: SparkSession, tmp_path: Path) -> Iterator[Application]:
    """An application that is closed again."""
    app = Application(spark, tmp_path / "checkpoints")
    yield app
    app.close()


@pytest.fixture
def inputs(spark: SparkSession, tmp_path: Path) -> tuple[Input, Input]:
    """Events, and the clicks that they are joined with, of which none matches."""
    events, clicks = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks")
    events.add(_EVENTS)
    clicks.add([Event(100, "c", 0)])
    return events, clicks


def _visits(inputs: tuple[Input, Input], function: Any) -> DataFrame:
    """Return what a function with timeouts counts of events that a join holds back until the flush."""
    events, clicks = (each.stream() for each in inputs)
    joined = events.alias("e").join(clicks.alias("c"), F.expr(_WITHIN), "left_outer").select("e.id", "e.key", "e.at")
    return joined.groupBy("key").applyInPandasWithState(
        function, user_code.SCHEMA, "ids STRING", "append", GroupStateTimeout.EventTimeTimeout
    )


def _counted(sink: Batches) -> dict[str, set[str]]:
    assert len(sink.written) == 2
    return {key: set(ids.split()) for key, ids in sink.drained}


def test_a_timeout_in_the_flush_fails_by_name_and_the_fixed_function_ends_the_drain(
    spark: SparkSession, app: Application, inputs: tuple[Input, Input], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_commit, "_RETRY_SECONDS", (0.2,))
    monkeypatch.setattr(after_commit, "_TRIES_BEFORE_STALLED", 0)  # it is for good
    read_all(app.start(_visits(inputs, user_code.until_event_time), Batches()))
    with app.user_waits():
        drain_id = app.ask()
        report = app.answer(drain_id, DrainState.STALLED)
        assert "is_drain_pane()" in report.message
        assert f"{SAME_VERSION_CONF}={drain_id}" in report.message
        (query,) = report.queries
        assert any("timeouts in event time" in warning for warning in query.warnings)
        app.channel.requests.write({drain_id: None})
        assert "is_drain_pane()" in app.answer(drain_id, DrainState.FAILED, patient=True).message
    app.close()
    fixed, sink = Application(spark, app.base), Batches()
    try:
        with session_confs(spark, {SAME_VERSION_CONF: drain_id}):
            read_all(fixed.start(_visits(inputs, user_code.until_event_time_or_drain), sink))
        assert _counted(sink) == _ALL
    finally:
        fixed.close()


def test_a_function_that_sets_no_timeout_in_the_flush_loses_nothing(app: Application, inputs: tuple[Input, Input]) -> None:
    sink = Batches()
    read_all(app.start(_visits(inputs, user_code.until_event_time_or_drain), sink))
    app.drain()
    assert _counted(sink) == _ALL


def _collected(inputs: tuple[Input, Input], processor: user_code.Collector) -> DataFrame:
    """Return what a processor with timers by the clock collects of the same events."""
    events, clicks = (each.stream() for each in inputs)
    joined = events.alias("e").join(clicks.alias("c"), F.expr(_WITHIN), "left_outer").select("e.id", "e.key", "e.at")
    return joined.groupBy("key").transformWithStateInPandas(processor, user_code.SCHEMA, "append", "ProcessingTime")


def test_code_that_would_keep_what_comes_in_the_flush_for_a_timer_is_not_drained_unasked(
    spark: SparkSession, app: Application, inputs: tuple[Input, Input]
) -> None:
    """No batch comes after the flush, so the timer never fires: all that the join had held back would be in no sink."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS["rocksdb"])
    query = app.start(_collected(inputs, user_code.Collector("processing")), Batches())
    read_all(query, len(_EVENTS))
    with app.asked(DrainState.REJECTED) as refused:
        assert refused.reason == "StateWouldBeLost"
        assert "hands what Join emits in the flush batch to TransformWithStateInPySpark" in refused.message
    assert query.isActive
    report = app.drain(stateLossPolicy="Accept")
    assert report.warnings[-1] == (
        "2 state rows of TransformWithStateInPySpark are left with 2 timers that were set in the flush batch: only the archive keeps them"
    )


@pytest.mark.soak
def test_code_that_emits_at_once_what_comes_in_the_flush_loses_nothing(
    spark: SparkSession, app: Application, inputs: tuple[Input, Input]
) -> None:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS["rocksdb"])
    sink = Batches()
    read_all(app.start(_collected(inputs, user_code.Prompt("processing")), sink), len(_EVENTS))
    report = app.drain(stateLossPolicy="Accept")
    assert {key: set(ids.split()) for key, ids in sink.drained} == _ALL
    assert [operator.disposition for operator in report.operators] == ["flushed", "flushed"]
