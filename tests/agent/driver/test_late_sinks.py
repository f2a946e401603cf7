"""What a sink is given where the agent starts its query later than the application has."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.driver.held_bounded_query import HeldBoundedQuery
from spark_drain_agent.spark_internals import late_start, sink_options
from spark_drain_agent.spark_internals.at_start import StartListener
from spark_drain_agent.spark_internals.reflection import private_field
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.apps.sinks import read
from tests.agent.driver.streams import in_thread, start
from tests.agent.harness import Feed, eventually
from tests.agent.warm import Warm
from tests.support.logging_sink import LoggingSource, logged_in


def rows_of(warm: Warm, base: Path) -> DataFrame:
    """Return the ids of the input."""
    return read(warm.session, base).select("id")


@contextmanager
def held(warm: Warm, base: Path) -> Iterator[Feed]:
    """Let a drain hold the driver for the time of this block; there is input."""
    feed = Feed(base / "input")
    feed.add()
    start(warm.session, base, "looped").processAllAvailable()
    with warm.requested(afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Drained")
        yield feed


def files(warm: Warm, base: Path) -> StreamingQuery:
    """Start a bounded query that writes files of JSON to ``out/bounded``."""
    rows = rows_of(warm, base).writeStream.format("json").option("path", str(base / "out/bounded"))
    return rows.option("checkpointLocation", str(base / "checkpoints/bounded")).trigger(availableNow=True).start()


def test_a_sink_has_the_options_of_the_application_in_a_late_start(warm: Warm, tmp_path: Path) -> None:
    """A path stays one, where Python takes the URI of the folder for a relative path."""
    warm.session.dataSource.register(LoggingSource)
    checkpoint = tmp_path / "checkpoints/logged"
    with held(warm, tmp_path) as feed:
        rows = read(warm.session, tmp_path).select(F.array("id").alias("ids")).writeStream.format("with_a_log")
        query = rows.queryName("logged").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    in_thread(query.awaitTermination)
    assert logged_in(checkpoint) == Counter(feed.ids)
    warm.session.streams.resetTerminated()


def test_a_sink_of_the_older_kind_is_made_in_the_session_of_the_start(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of elasticsearch-hadoop reads there where its log is; the file sink stands for one of a library."""
    monkeypatch.setattr(sink_options, "_SPARKS", ("of.nobody",))
    seen: list[str] = []

    def give(*arguments: Any) -> None:
        sink_options.give_own_options(*arguments)
        seen.append(private_field(arguments[-1].java_sink, "sparkSession").conf().get("my.mark"))

    monkeypatch.setattr(late_start, "give_own_options", give)
    conf = warm.session.conf
    with held(warm, tmp_path) as feed:
        conf.set("my.mark", "early")
        query = files(warm, tmp_path)
        conf.set("my.mark", "late")
    in_thread(query.awaitTermination)
    conf.unset("my.mark")
    assert seen == ["early"]
    written = [row["id"] for row in warm.session.read.json(str(tmp_path / "out/bounded")).collect()]
    assert Counter(written) == Counter(feed.ids)
    warm.session.streams.resetTerminated()


def test_a_file_sink_goes_by_the_confs_that_the_application_has_at_each_batch(warm: Warm, tmp_path: Path) -> None:
    """As Spark's own does, whatever it was made by; and nothing is left of the start (each kept its plan in the JVM, and a thread)."""
    with held(warm, tmp_path):
        query = files(warm, tmp_path)
    in_thread(query.awaitTermination)
    assert isinstance(query, HeldBoundedQuery)
    assert query._query is not None
    sink = warm.agent.internals.live(query._query).file_sink
    assert private_field(sink, "sparkSession") == warm.session._jsparkSession
    warm.session.streams.resetTerminated()
    del query, sink

    def left() -> list[StartListener]:
        warm.session._jvm.java.lang.System.gc()  # type: ignore[union-attr]
        gc.collect()
        return [item for item in gc.get_objects() if isinstance(item, StartListener)]

    eventually(lambda: not left(), "what a start needs to be forgotten")


def test_a_sink_is_looked_up_by_the_confs_of_the_start(warm: Warm, tmp_path: Path) -> None:
    """A library's may have options by such confs (`SessionConfigSupport`), which say where it writes."""
    conf, disabled = warm.session.conf, "spark.sql.streaming.disabledV2Writers"
    with held(warm, tmp_path) as feed:
        rows = read(warm.session, tmp_path).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoints/noop"))
        query = rows.trigger(availableNow=True).start()
        conf.set(disabled, "org.apache.spark.sql.execution.datasources.noop.NoopDataSource")
    try:
        in_thread(query.awaitTermination)
    finally:
        conf.unset(disabled)
    assert query.lastProgress is not None
    assert query.lastProgress["numInputRows"] == len(feed.ids)
    warm.session.streams.resetTerminated()


def test_the_rows_of_a_memory_sink_are_in_the_session_of_the_application(warm: Warm, tmp_path: Path) -> None:
    with held(warm, tmp_path) as feed:
        rows = rows_of(warm, tmp_path).writeStream.format("memory").queryName("remembered")
        query = rows.trigger(availableNow=True).start()
        assert warm.session.table("remembered").schema == rows_of(warm, tmp_path).schema
    in_thread(query.awaitTermination)
    assert Counter(row["id"] for row in warm.session.table("remembered").collect()) == Counter(feed.ids)
    warm.session.streams.resetTerminated()


def test_what_a_signal_handler_raises_leaves_the_start_of_a_query_that_is_put_off(
    warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a limit of time; Py4J makes an error of its own of it."""

    def is_left(*_: Any) -> Any:
        raise Py4JError("An error occurred while calling o1.start")

    with held(warm, tmp_path):
        monkeypatch.setattr(SparkInternals, "launch", is_left)
        with pytest.raises(Py4JError, match="o1"):
            files(warm, tmp_path)
        monkeypatch.undo()
    warm.session.streams.resetTerminated()


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("option", [True, False])
def test_the_folder_of_files_is_there_when_their_start_has_returned(warm: Warm, tmp_path: Path, bounded: bool, option: bool) -> None:
    """The program's next query reads it, and would fail in load() for want of a folder."""
    folder = str(tmp_path / "out/bounded")
    with held(warm, tmp_path) as feed:
        rows = rows_of(warm, tmp_path).writeStream.format("json").option("checkpointLocation", str(tmp_path / "checkpoints/bounded"))
        rows = rows.option("path", folder) if option else rows
        path = None if option else folder
        query = (rows.trigger(availableNow=True) if bounded else rows).start(path)
        behind = warm.session.readStream.schema("id long").json(folder)
    in_thread(query.awaitTermination)
    if not bounded:
        query = rows.start(path)
        query.processAllAvailable()
        query.stop()
    reading = behind.writeStream.format("memory").queryName("behind").trigger(availableNow=True).start()
    reading.awaitTermination(60)
    assert Counter(row["id"] for row in warm.session.table("behind").collect()) == Counter(feed.ids)
    warm.session.streams.resetTerminated()


@pytest.mark.parametrize("bounded", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_the_table_is_there_when_the_call_that_makes_it_has_returned(warm: Warm, tmp_path: Path, bounded: bool) -> None:
    """The program reads or alters it next."""
    table = f"made_{bounded}".lower()
    with held(warm, tmp_path) as feed:
        rows = rows_of(warm, tmp_path).withColumn("odd", F.col("id") % 2).writeStream.partitionBy("odd").format("parquet")
        rows = rows.option("path", str(tmp_path / "it's there")).option("checkpointLocation", str(tmp_path / "checkpoints" / table))
        query = (rows.trigger(availableNow=True) if bounded else rows).toTable(table)
        assert warm.session.table(table).columns == ["id", "odd"]
    try:
        in_thread(query.awaitTermination)
        if not bounded:
            query = rows.toTable(table)
            query.processAllAvailable()
            query.stop()
        assert Counter(row["id"] for row in warm.session.table(table).collect()) == Counter(feed.ids)
        assert {folder.name for folder in (tmp_path / "it's there").glob("odd=*")} == {f"odd={number % 2}" for number in feed.ids}
    finally:
        warm.session.sql(f"DROP TABLE {table}")
    warm.session.streams.resetTerminated()


def test_a_view_is_no_table_to_write_to(warm: Warm, tmp_path: Path) -> None:
    """Spark refuses it in `toTable()`; with the name in full it would make a table beside it."""
    warm.session.range(1).createOrReplaceTempView("looked_at")
    with held(warm, tmp_path):
        rows = rows_of(warm, tmp_path).writeStream.option("checkpointLocation", str(tmp_path / "checkpoints/view"))
        query = rows.trigger(availableNow=True).toTable("looked_at")
    with pytest.raises(AnalysisException, match="Temporary view looked_at doesn't support streaming write"):
        in_thread(query.awaitTermination)
    warm.session.catalog.dropTempView("looked_at")
    assert not warm.session.catalog.tableExists("looked_at")
    warm.session.streams.resetTerminated()
