"""The flush batch has the state schema of the batches before, which had input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import functions as F
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF, FLUSH_VALUES

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Feed, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(params=FLUSH_VALUES)
def flush(request: pytest.FixtureRequest, warm: Warm) -> Iterator[str]:
    warm.session.conf.set(FLUSH_CONF, request.param)
    yield request.param
    warm.session.conf.unset(FLUSH_CONF)


@pytest.mark.usefixtures("flush")
def test_keys_of_which_the_optimizer_finds_that_they_are_never_null(warm: Warm, tmp_path: Path) -> None:
    """Over an empty relation it calculates them before it looks, and Spark refuses a key that may be null in place of one that may not."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    since = F.to_date(F.lit("2026-01-01")).alias("since")
    half = F.when(F.col("id") % 2 == 0, F.lit("2026-01-01")).otherwise("2026-01-02").cast("date").alias("half")
    rows = read(warm.session, tmp_path)
    windows = counted(rows, since, half).writeStream.queryName("windows").foreachBatch(to_files(tmp_path / "out"))
    windows.option("checkpointLocation", str(tmp_path / "windows")).start().processAllAvailable()
    totals = {
        "constant": rows.withColumn("since", since).groupBy("since").agg(F.count("*")),
        "either": rows.groupBy(half).agg(F.count("*")),
        "within": rows.withColumn("since", since).groupBy("id").agg(F.max(F.struct("since", "id"))),
        "twice": rows.withColumn("since", since).dropDuplicates(["id", "since"]),
    }
    for name, frame in totals.items():
        writer = frame.writeStream.queryName(name).outputMode("append" if name == "twice" else "update").format("noop")
        writer.option("checkpointLocation", str(tmp_path / name)).start().processAllAvailable()
    assert ids_in(tmp_path / "out") != exactly(feed.ids)
    warm.drain(stateLossPolicy="Accept")
    assert ids_in(tmp_path / "out") == Counter(feed.ids)
