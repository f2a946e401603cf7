"""An application may have thousands of queries behind it that still matter: they are not asked again how they have ended."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from spark_drain_agent.queries.standing import Standing
from spark_drain_agent.spark_internals.live_query import LiveQuery

from tests.agent.asked import Asked
from tests.agent.warm import Warm
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark


def test_an_ended_query_is_asked_once_how_it_has_ended(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warm.session.range(3).write.parquet(f"{tmp_path}/input")
    for number in range(3):
        read = warm.session.readStream.schema("id long").parquet(f"{tmp_path}/input").groupBy("id").count()
        writer = read.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{tmp_path}/{number}").start().awaitTermination()
    registry = warm.agent.registry
    registry.prune()
    queries = registry.all()
    known = [(query.standing(), query.query_id, query.run_id) for query in queries]
    assert [standing for standing, _, _ in known] == [Standing.FINISHED] * 3
    asked = Asked(monkeypatch)
    assert [(query.standing(), query.query_id, query.run_id) for query in queries] == known
    assert asked.count() == 0


def test_a_query_whose_thread_has_not_begun_has_not_ended_for_good(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark lists a query a moment before it starts its thread."""
    read = warm.session.readStream.format("rate").load()
    read.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    (query,) = warm.agent.registry.all()
    with monkeypatch.context() as patch:
        patch.setattr(LiveQuery, "thread_alive", property(lambda _: False))
        assert query.standing() is Standing.STOPPED
    assert query.standing() is Standing.RUNS


def test_what_the_application_has_stopped_is_named_and_not_kept(warm: Warm, tmp_path: Path) -> None:
    """Its plan may hold tables: without the agent Spark forgets it."""
    jvm: Any = warm.session.sparkContext._jvm

    def begun_and_stopped() -> tuple[str, Any]:
        query = warm.session.readStream.format("rate").load().writeStream.format("noop").queryName("over")
        started = query.option("checkpointLocation", str(tmp_path)).start()
        started.stop()
        return str(started.runId), jvm.java.lang.ref.WeakReference(started._jsq.streamingQuery())

    run_id, execution = begun_and_stopped()

    def forgotten() -> bool:
        gc.collect()
        jvm.java.lang.System.gc()
        return execution.get() is None

    eventually(forgotten, what="Spark to forget the query")
    (left,) = warm.agent.registry.all()
    assert (left.label, left.run_id, left.standing(), left.ended) == ("query 'over'", run_id, Standing.STOPPED, True)
    assert left.query is not None
    assert (left.query.isActive, left.query.awaitTermination(1), left.query.exception()) == (False, True, None)
    with pytest.raises(ValueError, match="not started again"):
        left.captured.launch(None)
