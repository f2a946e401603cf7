"""What a drain does to every operator, on both state providers, measured against what docs/operators.md says."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.drain import after_commit
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_store import DrainState

from tests.semantics.operator_table import CASES, CLICKS, FIRST, Case
from tests.semantics.warm import PROVIDERS, Application, Batches, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[[], Application]


def last_of_each(rows: list[tuple[Any, ...]], mode: str) -> list[tuple[Any, ...]]:
    """Return the table that the rows of an output mode add up to."""
    return rows if mode == "append" else list({tuple(cell for cell in row if not isinstance(cell, tuple)): row for row in rows}.values())


_SAMPLE = "tumbling window"
"""The case that `make test` has with the second provider and on a work copy too; all are in `make soak`."""


def settings() -> list[Any]:
    """Return each case with each provider, and with one of them on a work copy, which queries that cannot flush themselves use anyway."""
    found = []
    for case in CASES:
        first, *others = [*(f"{provider}-Auto" for provider in case.providers), f"{case.providers[0]}-WorkCopy"]
        found.append(pytest.param(case, first, id=f"{case.name}-{first}"))
        marks = () if case.name == _SAMPLE else (pytest.mark.soak,)
        found += [pytest.param(case, other, id=f"{case.name}-{other}", marks=marks) for other in others]
    return found


@pytest.mark.parametrize(("case", "setting"), settings())
def test_operator(case: Case, setting: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    provider, flush = setting.split("-")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
    spark.conf.set(FLUSH_CONF, flush)
    events, clicks = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks")
    events.add(*case.files)
    clicks.add(*CLICKS)
    frame, sink = case.build(events, clicks), Batches()
    app = application()
    query = app.start(frame, sink, case.mode)
    read_all(query, None if case.idle else sum(map(len, case.files)))

    if case.refused:
        with app.asked(DrainState.REJECTED) as refused:
            assert refused.reason == "StateWouldBeLost"
            assert ", ".join(case.refused) in refused.message
        assert query.isActive
    report = app.drain(stateLossPolicy="Accept" if case.refused else "Refuse")

    assert [tuple(vars(operator).values()) for operator in report.operators] == list(case.operators)
    assert Counter(last_of_each(sink.rows, case.mode)) == Counter(case.truth)
    assert Counter(sink.drained) == Counter(case.flushed)
    assert sink.panes == (1 if case.operators else 0)


def test_state_with_a_time_to_live_is_seen_where_the_drain_comes_before_the_first_batch(
    application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    """Only the first batch notes that it expires."""
    (case,) = [case for case in CASES if case.name == "transformWithStateInPandas, state with a time to live"]
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS["rocksdb"])
    events, clicks = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks")
    events.add(*case.files)
    app = application()
    drain_id = app.ask()
    query = app.start(case.build(events, clicks), Batches(), case.mode)
    with app.user_waits():
        answer = app.answer(drain_id, DrainState.REJECTED)
    assert answer.reason == "StateWouldBeLost"
    read_all(query, sum(map(len, case.files)))


@pytest.mark.parametrize(
    ("name", "last_time"),
    [
        pytest.param("tumbling window", "9999-12-31 23:59:59", id="window"),
        pytest.param("stream-stream join, left outer", None, id="join", marks=pytest.mark.soak),
    ],
)
def test_a_time_that_no_watermark_passes(name: str, last_time: str | None, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """Spark never emits such a row, and no code of the application has left it."""
    (case,) = [case for case in CASES if case.name == name]
    last = case.files[-1][-1].id

    class Timed(Input):
        def stream(self, watermark: str | None = "12 seconds", source: str | None = None) -> DataFrame:
            time = F.when(F.col("id") == last, F.lit(last_time).cast("timestamp")).otherwise(F.col("at"))
            return super().stream(None, source).withColumn("at", time).withWatermark("at", str(watermark))

    events, clicks = Timed(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks")
    events.add(*case.files)
    clicks.add(*CLICKS)
    app, sink = application(), Batches()
    read_all(app.start(case.build(events, clicks), sink, case.mode))
    report = app.drain()
    (operator,) = report.operators
    assert (operator.disposition, operator.rows_after) == ("residual", 1)
    assert report.warnings[-1].startswith(f"1 state rows of {operator.name} are left whose ")


_LIMITS: dict[str, Callable[[Input, Input], DataFrame]] = {
    "over a limit": lambda events, _: events.stream().limit(15).select("id").limit(10),
    "of a source without records": lambda events, other: other.stream(None).limit(5).select("id").union(events.stream(None).select("id")),
    "over a limit, without a watermark": lambda events, _: events.stream(None).limit(15).select("id").limit(10),
}


@pytest.mark.parametrize(
    ("which", "flush"),
    [
        ("over a limit", "Auto"),
        ("of a source without records", "WorkCopy"),
        pytest.param("over a limit", "WorkCopy", marks=pytest.mark.soak),
        pytest.param("of a source without records", "Auto", marks=pytest.mark.soak),
    ],
)
def test_a_limit_is_in_the_flush_where_it_was_in_the_batch_before(
    which: str, flush: str, application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    """Of two limits Spark makes one; and a limit is in no batch in which its source has nothing to read."""
    spark.conf.set(FLUSH_CONF, flush)
    events, other = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "other")
    events.add(FIRST)
    app, sink = application(), Batches()
    read_all(app.start(_LIMITS[which](events, other), sink))
    assert app.drain(stateLossPolicy="Accept").operators[0].name == "GlobalLimit"
    assert Counter(sink.rows) == Counter((event.id,) for event in (FIRST[:10] if which == "over a limit" else FIRST))


@pytest.mark.parametrize(
    ("which", "told"),
    [("over a limit, without a watermark", "write a limit over a limit as one"), ("of a source without records", "a state that has a gap")],
)
def test_a_limit_that_the_flush_would_not_find(which: str, told: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    events, other = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "other")
    app, sink = application(), Batches()
    for source in (other, events):
        source.add(FIRST)
        if source is other:
            query = app.start(_LIMITS[which](events, other), sink)
        read_all(query)
    with app.asked(DrainState.REJECTED, stateLossPolicy="Accept") as refused:
        assert (refused.reason, told in refused.message) == ("UnsupportedQuery", True)
    assert query.isActive


def test_a_limit_below_a_window_that_was_not_in_the_newest_batch(application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    """Which Spark ran for the watermark alone, in the run before."""
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    frame = events.stream(None).limit(15).withWatermark("at", "10 seconds").groupBy(F.window("at", "10 seconds")).count()
    app = application()
    read_all(app.start(frame, sink))
    app.close()
    app = application()
    query = app.start(frame, sink)
    with app.asked(DrainState.REJECTED, stateLossPolicy="Accept") as refused:
        assert (refused.reason, "a state that has a gap" in refused.message) == ("UnsupportedQuery", True)
    assert query.isActive


@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_a_limit_of_a_query_that_has_run_no_batch_since_its_start(
    flush: str, application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    """The state in its checkpoint says which limits there are; after a drain, a source without records has left none of its own."""
    spark.conf.set(FLUSH_CONF, flush)
    events, other, sink = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "other"), Batches()
    frame = other.stream(None).limit(5).select("id").union(events.stream().limit(8).select("id"))
    for life in (1, 2):
        events.add(FIRST)
        app = application()
        read_all(app.start(frame, sink))
        app.close()
        app = application()
        app.start(frame, sink)
        app.drain(stateLossPolicy="Accept")
        app.close()
        assert len(sink.rows) == 8 * life


def test_a_limit_that_was_idle_since_the_last_drain_is_not_in_the_flush_that_a_crash_interrupted(
    application: Begin, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state that it had before that drain is still in the checkpoint."""
    monkeypatch.setattr(after_commit, "_RETRY_SECONDS", (0.2,))
    events, other, sink, failing = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "other"), Batches(), threading.Event()

    def into(batch: DataFrame, batch_id: int) -> None:
        assert not failing.is_set()
        sink(batch, batch_id)

    frame = other.stream(None).limit(5).select("id").union(events.stream().limit(8).select("id"))
    other.add(FIRST)
    for life in (1, 2):
        events.add(FIRST)
        app = application()
        read_all(app.start(frame, into))
        if life == 1:
            app.drain(stateLossPolicy="Accept")
    failing.set()
    with app.user_waits():
        asked = app.ask(stateLossPolicy="Accept")
        app.answer(asked, DrainState.STALLED)
    app.close()
    failing.clear()
    app = application()
    app.start(frame, into)
    app.drain(stateLossPolicy="Accept")
    assert len(sink.rows) == 5 + 8 + 8
