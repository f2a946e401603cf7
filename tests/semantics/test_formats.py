"""Checkpoint formats that the agent would not rewrite correctly are refused before anything is touched, and the query reads on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_drain_store import DrainState

from tests.semantics.operator_table import FIRST, SECOND
from tests.semantics.warm import PROVIDERS, Application, Batches, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(params=["stateStore.checkpointFormatVersion", "offsetLog.formatVersion"])
def newer(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    conf = f"spark.sql.streaming.{request.param}"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS["rocksdb"])
    spark.conf.set(conf, 2)
    yield conf
    spark.conf.unset(conf)


def test_version_2_is_refused(newer: str, application: Callable[[], Application], spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    app = application()
    query = app.start(events.stream().groupBy("at").count(), sink)
    read_all(query)
    checkpoint = tmp_path / "checkpoints/q"
    metadata = (checkpoint / "metadata").read_text()
    with app.asked(DrainState.REJECTED) as report:
        assert report.reason == "UnsupportedQuery"
        assert f"keep {newer} at 1" in report.message
    assert (checkpoint / "metadata").read_text() == metadata
    assert not (checkpoint / "_drain").exists()
    events.add(SECOND)
    read_all(query, len(FIRST) + len(SECOND))
