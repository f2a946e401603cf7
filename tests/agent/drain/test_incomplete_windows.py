"""Windows that a drain finds open go to a folder of their own, or are let go: never to the query's sink, and never twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.readwriter import DataFrameWriter
from pyspark.sql.streaming.query import StreamingQuery

from examples.incomplete_windows import v1, v2
from examples.video_sessions import pipeline
from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Feed, eventually, exactly, ids_in, newest
from tests.agent.warm import Warm
from tests.support.own_jvm import session_confs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DISCARD = {"incompleteWindows__policy": "Discard"}


def side_output(base: Path, test: str, data_format: str = "json") -> dict[str, str]:
    return {
        "incompleteWindows__policy": "SideOutput",
        "incompleteWindows__sideOutput__path": f"{base}/allowed/{test}",
        "incompleteWindows__sideOutput__format": data_format,
    }


def windows(warm: Warm, folder: Path, name: str, *, mode: str = "append", file_sink: bool = False) -> StreamingQuery:
    frame = counted(read(warm.session, folder))
    writer = frame.writeStream.queryName(name).outputMode(mode).option("checkpointLocation", str(folder / f"checkpoints/{name}"))
    out = folder / "out" / name
    query = writer.start(str(out), format="json") if file_sink else writer.foreachBatch(to_files(out)).start()
    query.processAllAvailable()
    return query


def query_in(drain: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(query for query in drain["queries"] if query["name"] == name)
    return found


def test_what_an_idle_query_tells_of_its_state_is_not_what_a_flush_has_left(warm: Warm, tmp_path: Path) -> None:
    """Every ten seconds Spark tells of the next batch, which there is none of yet, with the state after the last one."""
    Feed(tmp_path / "input").add(3)
    with session_confs(warm.session, {"spark.sql.streaming.noDataProgressEventInterval": "1"}):
        query = windows(warm, tmp_path, "gone")

    def is_idle() -> bool:
        told = query.lastProgress
        return told is not None and told["batchId"] > newest(tmp_path / "checkpoints/gone", "commits")

    eventually(is_idle, "Spark to tell of the next batch")
    report = query_in(warm.drain(**DISCARD), "gone")
    (operator,) = report["operators"]
    assert operator["disposition"] == "discarded"
    assert not [warning for warning in report["warnings"] if "are left" in warning]


def test_discarded_windows_are_counted_and_stay_in_the_archive(warm: Warm, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "input")
    dropped = feed.add(3)
    windows(warm, tmp_path, "gone")
    windows(warm, tmp_path, "filed", file_sink=True)
    emitted = ids_in(tmp_path / "out/gone")
    assert 0 < emitted.total() < len(dropped)

    drain = warm.drain(**DISCARD)
    for name in ("gone", "filed"):
        assert ids_in(tmp_path / "out" / name) == emitted, name
        report = query_in(drain, name)
        (operator,) = report["operators"]
        assert (operator["disposition"], report["checkpointPolicy"]) == ("discarded", "Reseed")
        assert operator["rowsBefore"] > 0
        assert report["message"].startswith(f"{operator['rowsBefore']} state rows were discarded")
    archive = Path(query_in(drain, "gone")["archive"].removeprefix("file:"))
    assert list((archive / "state/0").rglob("*.delta"))
    assert query_in(drain, "gone")["message"].endswith(f"{archive} keeps them")
    assert query_in(drain, "gone")["flushBatchId"] is None

    later = feed.add(2)
    for name in ("gone", "filed"):
        windows(warm, tmp_path, name, file_sink=name == "filed")
    warm.drain()
    for name in ("gone", "filed"):
        assert ids_in(tmp_path / "out" / name) == emitted + exactly(later), name


def test_side_output_has_each_querys_open_windows_and_its_sink_none(warm: Warm, base: Path, tmp_path: Path) -> None:
    """In update mode a window's every change was written already; the side output has it once, whole."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    windows(warm, tmp_path, "appended")
    windows(warm, tmp_path, "updated", mode="update")
    windows(warm, tmp_path, "filed/odd name", file_sink=True)
    read(warm.session, tmp_path).writeStream.queryName("stateless").option("checkpointLocation", str(tmp_path / "none")).foreachBatch(
        to_files(tmp_path / "out/stateless")
    ).start().processAllAvailable()
    names = {"appended": "appended", "updated": "updated", "filed/odd name": "filed%2Fodd%20name"}
    before = {name: ids_in(tmp_path / "out" / name) for name in names}
    watermark_passed = before["appended"]

    drain = warm.drain(**side_output(base, "each"))
    for name, folder in names.items():
        side = base / "allowed/each" / folder
        assert query_in(drain, name)["sideOutput"] == f"file:{side}"
        assert query_in(drain, name)["operators"][0]["rowsAfter"] == 0
        assert ids_in(tmp_path / "out" / name) == before[name]
        assert watermark_passed + ids_in(side) == exactly(feed.ids), name
    assert query_in(drain, "stateless")["sideOutput"] == ""
    assert len(list((base / "allowed/each").iterdir())) == len(names)

    later = feed.add()
    windows(warm, tmp_path, "appended")
    warm.drain()
    assert ids_in(tmp_path / "out/appended") == watermark_passed + exactly(later)


def test_side_output_is_there_once_however_often_the_flush_is_tried(
    warm: Warm, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch fails after its rows were written, as a crash there would leave it."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    windows(warm, tmp_path, "often")
    emitted = ids_in(tmp_path / "out/often")
    tries: list[str] = []
    trials: list[str] = []
    save = DataFrameWriter.save

    def written_and_lost(self: DataFrameWriter, path: str) -> None:
        save(self, path)
        if ".trial-" in path:  # before the drain, and without rows
            trials.append(path)
            return
        tries.append(path)
        if len(tries) < 3:
            raise RuntimeError("the rows are there, the commit is not")

    monkeypatch.setattr(DataFrameWriter, "save", written_and_lost)
    warm.drain(**side_output(base, "once"))
    assert len(tries) == 3
    assert len(trials) == 1
    assert emitted + ids_in(base / "allowed/once/often") == exactly(feed.ids)


@pytest.mark.parametrize(
    ("options", "reason", "words"),
    [
        ({"path": "/elsewhere"}, "PathNotAllowed", "file:/elsewhere is not below any of"),
        ({"path": "{base}/allowed/../secret"}, "PathNotAllowed", "is not below"),
        ({"path": "{base}/allowed-too"}, "PathNotAllowed", "start the application with spark.sparkdrain.allowedPaths"),
        ({"path": "nowhere://bucket/a"}, "PathNotAllowed", "on no filesystem that the driver can reach"),
        ({"path": "{base}/allowed"}, "PathNotAllowed", "is not below any of"),
        ({"path": "{base}/allowed/there"}, "PathExists", "exists already: name a folder that does not"),
        ({"path": "{base}/allowed/file/refused"}, "UnsupportedOption", "file/refused' cannot be written: "),
        ({"path": "{base}/allowed/refused/{long}"}, "UnsupportedOption", "cannot be written: "),
        (
            {"format": "parquette"},
            "UnsupportedOption",
            "'parquette' does not work for query 'refused': this Spark does not know it; only delta and file formats (parquet, ",
        ),
        ({"format": "csv"}, "UnsupportedOption", "doesn't support the column `window` of the type"),
    ],
    ids=lambda value: next(iter(value.values())) if isinstance(value, dict) else "",
)
def test_refused_before_anything_is_touched(warm: Warm, base: Path, options: dict[str, str], reason: str, words: str) -> None:
    (base / "allowed/there").mkdir(exist_ok=True, parents=True)
    (base / "allowed/file").touch()
    Feed(base / "input")
    query = windows(warm, base, "refused")
    asked = side_output(base, "refused")
    for name, value in options.items():
        asked[f"incompleteWindows__sideOutput__{name}"] = value.format(base=base, long="x" * 250)
    found = warm.refused(**asked)
    assert found[0] == reason
    assert words in found[1]
    assert query.isActive
    assert not list((base / "allowed").glob("refused*"))
    assert not list(base.glob("*.trial-*"))


def test_a_plan_leaves_no_folder(warm: Warm, base: Path) -> None:
    Feed(base / "input")
    windows(warm, base, "planned")
    asked = side_output(base, "planned/below/that")
    with warm.requested(execution="PlanOnly", stateExport__path=f"{base}/allowed/planned/export", **asked) as drain:
        warm.drains.reaches(drain, "Acknowledged", reason="Planned")
        assert not (base / "allowed/planned").exists()


def test_a_format_that_refuses_the_columns_together_is_refused_too(warm: Warm, base: Path) -> None:
    """Only a write shows it: each column by itself could be in a text file, or in a table."""
    (base / "allowed").mkdir(exist_ok=True)
    Feed(base / "input")
    texts = counted(read(warm.session, base)).selectExpr("string(window.start) AS start", "string(window.end) AS end")
    query = texts.writeStream.queryName("texts").option("checkpointLocation", str(base / "checkpoints/texts")).format("noop").start()
    query.processAllAvailable()
    reason, message = warm.refused(**side_output(base, "refused", "text"))
    assert reason == "UnsupportedOption"
    assert "'text' does not work for query 'texts': Text data source supports only a single column, and you have 2 columns" in message
    assert "use a format that takes such columns, such as 'parquet' or 'json'" in message
    assert query.isActive
    assert not list((base / "allowed").glob("refused*"))


def test_the_example_writes_every_window_once_and_whole(warm: Warm, tmp_path: Path, base: Path) -> None:
    """Two versions and a drain between them; minutes 0 to 39, and the drain comes in the middle of a window."""
    folder = base / "allowed/example"
    truth: Counter[tuple[str, str]] = Counter()

    def click(number: int, minutes: range) -> None:
        (folder / "clicks").mkdir(parents=True, exist_ok=True)
        rows = [{"at": f"2026-01-01T00:{minute:02}:{second:02}Z", "user": "ab"[second % 3 == 0]} for minute in minutes for second in (5, 6)]
        (folder / f"clicks/{number}.json").write_text("\n".join(map(json.dumps, rows)))
        truth.update((f"00:{row['at'][14]}0", row["user"]) for row in rows)

    click(0, range(20))
    click(1, range(20, 25))
    v1.start(warm.session, str(folder)).processAllAvailable()
    warm.drain(
        incompleteWindows__policy="SideOutput",
        incompleteWindows__sideOutput__path=f"{folder}/incomplete",
        incompleteWindows__sideOutput__format="json",
    )
    click(2, range(25, 40))
    v2.start(warm.session, str(folder)).processAllAvailable()
    warm.drain()

    counts: Counter[tuple[str, str]] = Counter()
    rows = 0
    for path in (folder / "counts").glob("*/*.json"):
        for row in map(json.loads, path.read_text().splitlines()):
            counts[row["window"]["start"][11:16], row["user"]] += row["clicks"]
            rows += 1
    assert counts == truth
    assert rows == len(truth), "no window may come in two parts"
    assert {path.parent.name[:2] for path in (folder / "counts").glob("*/*.json")} == {"v1", "v2"}


def test_a_session_that_a_drain_ended_is_tentative(warm: Warm, base: Path) -> None:
    """One play ends before the drain, one goes on across it, one is never heard of again."""
    folder = base / "allowed/videos"
    (folder / "events").mkdir(parents=True)

    def watch(number: int, **minutes: range) -> None:
        rows = [{"at": f"2026-01-01T00:{minute:02}:00Z", "play": play} for play, those in minutes.items() for minute in those]
        (folder / f"events/{number}.json").write_text("\n".join(map(json.dumps, rows)))

    watch(0, ended=range(3), goes_on=range(15), lost=range(12, 15))
    pipeline.start(warm.session, str(folder)).processAllAvailable()
    warm.drain()
    watch(1, goes_on=range(15, 20), clock=range(40, 41))
    pipeline.start(warm.session, str(folder)).processAllAvailable()
    warm.drain()

    rows = [json.loads(line) for path in (folder / "sessions").glob("*/*.json") for line in path.read_text().splitlines()]
    finished = {(row["play"], row["finished"][14:16]) for row in rows if not row["tentative"]}
    assert finished == {("ended", "02"), ("goes_on", "19")}
    tentative = {(row["play"], row["finished"][14:16]) for row in rows if row["tentative"]}
    assert tentative == {("goes_on", "14"), ("lost", "14"), ("clock", "40")}
