"""An application may have thousands of queries behind it that still matter: they are not asked again how they have ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_drain_agent.queries.standing import Standing

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
