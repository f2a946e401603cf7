"""What a query takes over of session and thread when it starts also holds for a flush that runs elsewhere, later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_drain_agent import is_drain_pane
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF

from tests.agent.apps.sinks import counted, read
from tests.agent.driver.streams import listening
from tests.agent.harness import Feed
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ZONE, OVERWRITE = "spark.sql.session.timeZone", "spark.sql.sources.partitionOverwriteMode"


def settle_in(spark: SparkSession, tenant: str, zone: str, overwrite: str) -> None:
    spark.conf.set(ZONE, zone)
    spark.conf.set(OVERWRITE, overwrite)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {tenant}")
    spark.sql(f"USE {tenant}")
    spark.sql(f"SELECT 1 AS {tenant}").createOrReplaceTempView("tenant")
    spark.sparkContext.setLocalProperty("tenant", tenant)


def found(spark: Any) -> tuple[str | None, ...]:
    confs = (str(spark.conf.get(name)) for name in (ZONE, OVERWRITE))
    return (*confs, str(spark.catalog.currentDatabase()), *spark.table("tenant").columns, spark.sparkContext.getLocalProperty("tenant"))


EARLY = ("Asia/Tokyo", "dynamic", "early", "early", "early")


@pytest.fixture
def spark(warm: Warm) -> Iterator[SparkSession]:
    session, before = warm.session, {name: str(warm.session.conf.get(name)) for name in (ZONE, OVERWRITE)}
    settle_in(session, "early", "Asia/Tokyo", "dynamic")
    yield session
    session.sql("USE default")
    session.catalog.dropTempView("tenant")
    session.sparkContext.setLocalProperty("tenant", None)  # type: ignore[arg-type]  # PySpark removes a property by None
    for name, value in before.items():
        session.conf.set(name, value)
    session.conf.unset(FLUSH_CONF)


@pytest.mark.parametrize("policy", ["Emit", "SideOutput"])
def test_a_flush_on_a_work_copy_sees_what_its_query_saw(spark: SparkSession, warm: Warm, base: Path, tmp_path: Path, policy: str) -> None:
    """The application has changed its session for other queries since."""
    Feed(tmp_path / "input").add(3)
    seen: list[tuple[bool, tuple[str | None, ...]]] = []
    heard: list[str | None] = []

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.count()
        seen.append((is_drain_pane(), found(batch.sparkSession)))

    spark.conf.set(FLUSH_CONF, "WorkCopy")
    writer = counted(read(spark, tmp_path)).writeStream.queryName("early").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.foreachBatch(write).start().processAllAvailable()
    settle_in(spark, "late", "UTC", "static")
    aside = {"incompleteWindows__sideOutput__path": f"{base}/allowed/early"} if policy == "SideOutput" else {}
    with listening(spark, heard.append):
        warm.drain(incompleteWindows__policy=policy, **aside)
    assert {at for _, at in seen} == {EARLY}
    assert any(pane for pane, _ in seen) == (policy == "Emit")
    assert heard == ["early"], "the application's listeners hear of the flush"
    assert found(spark) == ("UTC", "static", "late", "late", "late")


def test_what_a_flush_that_failed_has_left_in_its_session_does_not_matter(warm: Warm, tmp_path: Path) -> None:
    """Each try begins with the session as the last batch before the drain has left it, as a batch that succeeds finds it."""
    Feed(tmp_path / "input").add(3)
    tries: list[int] = []

    def upsert(batch: DataFrame, batch_id: int) -> None:
        session = batch.sparkSession
        batch.createTempView("updates")
        session.sql("SELECT count(*) FROM updates").collect()
        if is_drain_pane():
            tries.append(batch_id)
            if len(tries) == 1:
                raise OSError("the sink is away")
        session.catalog.dropTempView("updates")

    writer = counted(read(warm.session, tmp_path)).writeStream.queryName("upserts").option("checkpointLocation", f"{tmp_path}/checkpoint")
    writer.foreachBatch(upsert).start().processAllAvailable()
    warm.drain()
    assert len(tries) == 2


def test_a_query_that_is_kept_from_starting_keeps_its_session(spark: SparkSession, warm: Warm, tmp_path: Path) -> None:
    """A killed driver's next run finishes its queries while main goes on to start others."""
    Feed(tmp_path / "input").add()
    writer = read(spark, tmp_path).writeStream.format("noop")
    writer.option("checkpointLocation", str(tmp_path / "first")).start().processAllAvailable()
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Drained")
        kept = writer.option("checkpointLocation", str(tmp_path / "second")).start()
        settle_in(spark, "late", "UTC", "static")
        tracked, _ = warm.agent.held.stand_ins._known[kept.id]
        then = tracked.as_started().dataset.sparkSession()
        assert [str(then.conf().get(name)) for name in (ZONE, OVERWRITE)] == ["Asia/Tokyo", "dynamic"]
        assert str(then.catalog().currentDatabase()) == "early"
        assert tracked.local_properties()["tenant"] == "early"
