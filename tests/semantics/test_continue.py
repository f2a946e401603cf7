"""After checkpoint policy Continue the next version goes on from the state that the flush left: windows at the cut come in two rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.checkpoint.empty_state import EmptyStateError
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_store import DrainState

from tests.semantics.user_code import SCHEMA, Periodic
from tests.semantics.warm import MIDNIGHT, PROVIDERS, Application, Batches, Event, Input, read_all
from tests.support.own_jvm import session_confs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_BEFORE, _AFTER = 30, 12


def counted(events: Input) -> DataFrame:
    windows = events.stream("0 seconds").groupBy(F.window("at", "10 seconds"))
    return windows.agg(F.count("*").alias("n")).select(F.col("window.start").cast("long"), "n")


@pytest.mark.parametrize("flush", ["Auto", pytest.param("WorkCopy", marks=pytest.mark.soak)])
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


@pytest.mark.parametrize(
    ("careful", "flush"),
    [
        pytest.param(True, "Auto", id="sets none in a drain-Auto", marks=pytest.mark.soak),
        pytest.param(False, "WorkCopy", id="sets one in a drain-WorkCopy"),
        pytest.param(True, "WorkCopy", id="sets none in a drain-WorkCopy", marks=pytest.mark.soak),
        pytest.param(False, "Auto", id="sets one in a drain-Auto", marks=pytest.mark.soak),
    ],
)
def test_a_timer_that_sets_itself_anew(
    careful: bool, flush: str, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """One that is counted from the flush's watermark is at the end of time: its key is never called again, and the drain says so."""
    spark.conf.set(FLUSH_CONF, flush)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS["rocksdb"])
    events, sink = Input(spark, tmp_path / "events"), Batches()
    reports = []
    for version in range(2):
        events.add(*([Event(10 * version + number, "ab"[number % 2], 10 * version + number)] for number in range(4)))
        app = application()
        grouped = events.stream("0 seconds").groupBy("key")
        read_all(app.start(grouped.transformWithStateInPandas(Periodic(careful=careful), SCHEMA, "append", "EventTime"), sink))
        reports.append(app.drain(checkpoint__policy="Continue"))
        app.close()
    found = sorted(int(number) for row in sink.rows for number in row[1].split())
    assert found == ([0, 1, 2, 3, 10, 11, 12, 13] if careful else [0, 1, 2, 3])
    assert ["let it set none where is_drain_pane() is true" in warning for warning in reports[0].warnings] == [True] + [False] * (
        not careful
    )
    if not careful:
        assert reports[0].warnings[-1].startswith("2 timers of TransformWithStateInPySpark were set in the flush batch: those counted from")
        assert "state rows of TransformWithStateInPySpark are left" in reports[1].warnings[-1]


def test_the_next_version_writes_files_to_another_folder(
    application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """Spark reads the entries of a file sink's log from the first one on; a folder with those of other batches is refused by name."""
    events, found = Input(spark, tmp_path / "events"), 0

    def launch(app: Application, folder: str) -> StreamingQuery:
        writer = counted(events).writeStream.format("json").queryName("q").option("path", str(tmp_path / folder))
        return app.launch(writer.option("checkpointLocation", f"{app.base}/q"))

    with session_confs(spark, {"spark.sql.streaming.fileSink.log.compactInterval": "3"}):
        for start, folder in ((0, "first"), (100, "second"), (200, "second")):
            events.add(*([Event(number, "a", start + number * 5)] for number in range(4)))
            app = application()
            if folder == "second":
                with pytest.raises(EmptyStateError, match=r"cannot go on with batch \d+, .*output folder .*/other ends with batch 0"):
                    launch(app, "other")
            read_all(launch(app, folder))
            app.drain(checkpoint__policy="Continue")
            app.close()
            (tmp_path / "other/_spark_metadata").mkdir(parents=True, exist_ok=True)
            (tmp_path / "other/_spark_metadata/0").write_text("v1")
    for folder in ("first", "second"):
        found += sum(row.n for row in spark.read.json(str(tmp_path / folder)).collect())
    assert found == 4 * 3


def once(events: Input) -> DataFrame:
    return events.stream("0 seconds").select("id", "at").dropDuplicatesWithinWatermark(["id"])


def to_json(app: Application, events: Input, folder: Path) -> StreamingQuery:
    return app.launch(once(events).writeStream.format("json").option("path", str(folder)).option("checkpointLocation", f"{app.base}/q"))


def interrupted(
    application: Callable[[], Application], events: Input, folder: Path, second: Callable[[Application], StreamingQuery]
) -> int:
    """Drain a version that wrote ids 0 to 3 to a folder, and end a ``second`` one as if killed in its first batch, of ids 100 to 103.

    Returns
    -------
    int
        Id of that batch.
    """
    events.add([Event(number, "a", number) for number in range(4)])
    app = application()
    read_all(to_json(app, events, folder))
    app.drain(checkpoint__policy="Continue", stateLossPolicy="Accept")
    app.close()
    first = 1 + max(int(path.name) for path in Path(app.base, "q/commits").glob("[0-9]*"))
    events.add([Event(number, "a", number) for number in range(100, 104)])
    app = application()
    read_all(second(app))
    app.close()
    for left in (f"commits/*{first}*", f"commits/*{first + 1}*", f"offsets/*{first + 1}*"):
        for path in Path(app.base, "q").glob(left):
            path.unlink()
    return first


def test_a_batch_that_the_sink_of_an_interrupted_version_has_taken_is_not_written_to_another_folder(
    application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    events = Input(spark, tmp_path / "events")
    first = interrupted(application, events, tmp_path / "first", lambda app: to_json(app, events, tmp_path / "second"))
    (tmp_path / f"second/_spark_metadata/{first + 1}").unlink()
    app = application()
    with pytest.raises(EmptyStateError, match=rf"had taken batch {first}, which this one would write once more"):
        to_json(app, events, tmp_path / "third")
    read_all(to_json(app, events, tmp_path / "second"))
    found = [row.id for folder in ("first", "second") for row in spark.read.json(f"{tmp_path}/{folder}").collect()]
    assert sorted(found) == [0, 1, 2, 3, 100, 101, 102, 103]


def test_the_entry_of_a_batch_that_another_sink_may_have_taken_can_be_removed(
    application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """By its owner, who sees that it has not, and knows nothing of the checksum that Hadoop keeps beside it."""
    events = Input(spark, tmp_path / "events")
    first = interrupted(application, events, tmp_path / "out", lambda app: app.start(once(events), Batches()))
    app = application()
    with pytest.raises(EmptyStateError, match=rf"its sink, foreachbatch, may have taken, .*remove .*/offsets/{first} and start again"):
        to_json(app, events, tmp_path / "out")
    Path(app.base, f"q/offsets/{first}").unlink()
    read_all(to_json(app, events, tmp_path / "out"))
    assert sorted(row.id for row in spark.read.json(f"{tmp_path}/out").collect()) == [0, 1, 2, 3, 100, 101, 102, 103]
