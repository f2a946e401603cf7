"""An application may have thousands of queries behind it that still matter: they are not asked again how they have ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_drain_agent.queries.standing import Standing
from spark_drain_agent.spark_internals.live_query import LiveQuery

from tests.agent.asked import Asked
from tests.agent.warm import Warm

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
