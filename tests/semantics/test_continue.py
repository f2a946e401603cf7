"""After checkpoint policy Continue the next version goes on from the state that the flush left: windows at the cut come in two rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_store import DrainState

from tests.semantics.warm import MIDNIGHT, Application, Batches, Event, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_BEFORE, _AFTER = 30, 12


def counted(events: Input) -> DataFrame:
    windows = events.stream("0 seconds").groupBy(F.window("at", "10 seconds"))
    return windows.agg(F.count("*").alias("n")).select(F.col("window.start").cast("long"), "n")


@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_a_window_at_the_cut_has_a_row_from_each_side(
    flush: str, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set(FLUSH_CONF, flush)
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add([Event(number, "a", 1) for number in range(_BEFORE)])
    app = application()
    read_all(app.start(counted(events), sink))
    assert sink.rows == []
    app.drain(checkpoint__policy="Continue")
    app.close()
    assert sink.drained == [(MIDNIGHT, _BEFORE)]

    events.add([Event(_BEFORE + number, "a", 2) for number in range(_AFTER)], [Event(-1, "a", 60)])
    app = application()
    query = app.start(counted(events), sink)
    read_all(query)
    assert sink.rows == [(MIDNIGHT, _BEFORE), (MIDNIGHT, _AFTER)]
    assert sum(progress["stateOperators"][0]["numRowsDroppedByWatermark"] for progress in query.recentProgress) == 0


def test_what_the_flush_does_not_remove_is_still_there(application: Callable[[], Application], spark: SparkSession, tmp_path: Path) -> None:
    """The result table of complete mode, and the memory of deduplication without a watermark."""
    events, tables, unique = Input(spark, tmp_path / "events"), Batches(), Batches()

    def version() -> Application:
        app = application()
        read_all(app.start(events.stream(None).groupBy("key").count(), tables, mode="complete", name="table"))
        read_all(app.start(events.stream(None).select("id").dropDuplicates(["id"]), unique, name="unique"))
        return app

    events.add([Event(1, "a", 1), Event(2, "a", 2), Event(3, "b", 3)])
    app = version()
    with app.asked(DrainState.DRAINED, checkpoint__policy="Continue", stateLossPolicy="Accept"):
        pass
    app.close()
    events.add([Event(4, "a", 4), Event(3, "b", 5)])
    version()
    assert sorted(tables.rows[-2:]) == [("a", 3), ("b", 2)]
    assert sorted(unique.rows) == [(1,), (2,), (3,), (4,)]
