"""A library's sink may keep its own log of what it has committed below the option checkpointLocation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_agent.spark_internals import session, sink_options
from spark_drain_agent.spark_internals.live_query import LiveQuery
from spark_drain_agent.spark_internals.reflection import private_field
from spark_drain_agent.spark_internals.trees import pairs

from tests.semantics.operator_table import EVENTS, FIRST, SECOND
from tests.semantics.warm import Application, Input
from tests.support.logging_sink import LoggingSource, logged_in

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def windows(events: Input) -> DataStreamWriter:
    """Return the writer of the ids in each window."""
    counted = events.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids"))
    return counted.select("ids").writeStream.queryName("q").outputMode("append")


def test_a_sinks_log_below_the_checkpoint_has_the_flush_on_a_work_copy(
    application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set(FLUSH_CONF, "WorkCopy")
    spark.dataSource.register(LoggingSource)
    events, checkpoint = Input(spark, tmp_path / "events"), tmp_path / "checkpoints/q"
    events.add(FIRST, SECOND)
    app = application()
    query = app.launch(windows(events).format("with_a_log").option("checkpointLocation", str(checkpoint)))
    query.processAllAvailable()
    app.drain()
    assert not [*checkpoint.glob("_drain/**/sinks")]
    assert logged_in(checkpoint) == Counter(event.id for event in EVENTS)


def test_a_sink_of_the_older_kind_is_made_with_the_options_of_the_application(
    application: Callable[[], Application], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file sink stands for one of a library."""
    monkeypatch.setattr(sink_options, "_SPARKS", ("of.nobody",))
    monkeypatch.setattr(LiveQuery, "file_sink", None)
    seen: list[str] = []

    def give(*arguments: Any) -> None:
        sink_options.give_own_options(*arguments)
        options = {name.lower(): value for name, value in pairs(private_field(arguments[-1].java_sink, "options"))}
        seen.append(options["checkpointlocation"])

    monkeypatch.setattr(session, "give_own_options", give)
    spark.conf.set(FLUSH_CONF, "WorkCopy")
    events, checkpoint = Input(spark, tmp_path / "events"), tmp_path / "checkpoints/q"
    events.add(FIRST, SECOND)
    app = application()
    query = app.launch(windows(events).format("json").option("path", str(tmp_path / "out")).option("checkpointLocation", str(checkpoint)))
    query.processAllAvailable()
    app.drain()
    assert seen == [str(checkpoint)]
    rows = spark.read.json(str(tmp_path / "out")).collect()
    assert Counter(number for row in rows for number in row["ids"]) == Counter(event.id for event in EVENTS)


def test_files_of_the_flush_are_written_by_the_confs_that_the_others_are(
    application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's file sink asks the application's session at each batch, which may have changed since start()."""
    spark.conf.set(FLUSH_CONF, "WorkCopy")
    events, zone, before = Input(spark, tmp_path / "events"), "spark.sql.session.timeZone", spark.conf.get("spark.sql.session.timeZone")
    events.add(FIRST, SECOND)
    app = application()
    rows = events.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids"))
    begun = rows.select("ids", F.col("window.start").alias("begin"), F.unix_seconds("window.start").alias("seconds"))
    made = begun.writeStream.queryName("q").outputMode("append").partitionBy("begin")
    query = app.launch(
        made.format("json").option("path", str(tmp_path / "out")).option("checkpointLocation", str(tmp_path / "checkpoints/q"))
    )
    spark.conf.set(zone, "Asia/Tokyo")
    try:
        query.processAllAvailable()
        app.drain()
    finally:
        spark.conf.set(zone, str(before))
    written = spark.read.option("inferSchema", "false").json(str(tmp_path / "out/*"))
    found = written.select("seconds", "ids", F.input_file_name().alias("file")).collect()
    assert Counter(number for row in found for number in row["ids"]) == Counter(event.id for event in EVENTS)
    for row in found:
        expected = datetime.fromtimestamp(row["seconds"], ZoneInfo("Asia/Tokyo")).strftime("begin=%Y-%m-%d %H:%M:%S")
        assert expected in unquote(unquote(row["file"]))
