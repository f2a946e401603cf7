"""Queries of one application that read what another one writes: the writer is drained first, and its last rows go through the readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spark_drain_agent import milestones

from tests.agent.apps.chain import start
from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Drains, Driver, Feed, eventually, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def by_name(drain: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {query["name"]: query for query in drain["queries"]}


def plan(warm: Warm, **options: str) -> dict[str, dict[str, Any]]:
    with warm.requested(execution="PlanOnly", **options) as asked:
        return by_name(warm.drains.reaches(asked, "Acknowledged", reason="Planned"))


def folder(base: Path, name: str) -> str:
    return f"file:{base}/checkpoints/{name}"


def test_a_drain_goes_through_all_of_them_twice(warm: Warm, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "input")
    for part in ("first", "second"):
        (tmp_path / part).mkdir()
    for mode in ("Drain", "CatchUp"):
        feed.add(3)
        queries = start(warm.session, tmp_path)
        if mode == "Drain":
            queries[-1].processAllAvailable()  # the others are still behind
            subset = plan(warm, queries="second", afterDrain="Keep")
            assert subset["second"]["dependsOn"] == []
            assert [warning.partition(",")[0] for warning in subset["second"]["warnings"] if " reads what " in warning] == [
                "query 'third' reads what query 'second' writes",
                "query 'second' reads what query 'first' writes",
            ]
        drain = by_name(warm.drain(mode))
        assert {name: query["dependsOn"] for name, query in drain.items()} == {
            "first": [],
            "second": [folder(tmp_path, "first")],
            "third": [folder(tmp_path, "second")],
        }
        assert {query["state"] for query in drain.values()} == {"Drained"}
        assert all(query["operators"][0]["rowsAfter"] == 0 for query in drain.values())
        assert ids_in(tmp_path / "out") == exactly(feed.ids)


@pytest.mark.soak
def test_a_query_that_ended_while_it_was_fed_is_started_again_by_the_drain(
    warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of what it depends on is read with the same writer: no row is skipped, and no batch is larger."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    for part in ("first", "second"):
        (tmp_path / part).mkdir()
    third, second, first = start(warm.session, tmp_path)
    first.processAllAvailable()
    for reader in (second, third):
        reader.processAllAvailable()

    def stop_the_reader(point: str) -> None:
        if point == "upstream-finished":
            second._jsq.stop()

    monkeypatch.setattr(milestones, "_observers", [stop_the_reader])
    warm.drain()
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def test_queries_that_feed_each_other_are_named(warm: Warm, tmp_path: Path) -> None:
    for part, other in (("left", "right"), ("right", "left")):
        (tmp_path / part).mkdir(exist_ok=True)
        rows = warm.session.readStream.schema("id LONG").json(str(tmp_path / part))
        rows.writeStream.queryName(part).option("checkpointLocation", str(tmp_path / f"checkpoints/{part}")).start(
            str(tmp_path / other), format="json"
        )
    reason, message = warm.refused()
    assert reason == "UnorderedQueries"
    assert "'left' > 'right' > 'left'" in message or "'right' > 'left' > 'right'" in message
    assert all(query.isActive for query in warm.session.streams.active)
    assert {query["state"] for query in warm.drain("Stop")["queries"]} == {"Drained"}


def test_a_table_between_two_queries(warm: Warm, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "input")
    feed.add()
    warm.session.sql("CREATE TABLE between_two (id LONG) USING parquet")
    read(warm.session, tmp_path).select("id").writeStream.queryName("writer").option(
        "checkpointLocation", str(tmp_path / "checkpoints/writer")
    ).toTable("between_two")
    warm.session.readStream.table("between_two").writeStream.queryName("reader").format("noop").option(
        "checkpointLocation", str(tmp_path / "checkpoints/reader")
    ).start()
    assert {name: query["dependsOn"] for name, query in plan(warm).items()} == {"writer": [], "reader": [folder(tmp_path, "writer")]}


@pytest.mark.parametrize("point", [pytest.param("upstream-finished", marks=pytest.mark.soak), "followed"])
def test_killed_between_the_writers_flush_and_the_readers(tmp_path: Path, point: str) -> None:
    """The restarted application starts its queries in another order, and the drain is finished in that of the data."""
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add(4)
    confs = {"spark.sparkdrain.queryDependencies": "first>second,second>third"}
    (tmp_path / "kill-at").write_text(point)
    killed = Driver("chain.py", tmp_path, store=drains, confs=confs)
    try:
        eventually(lambda: list((tmp_path / "second").glob("*.json")), "rows to reach the second folder", alive=killed)
        asked = drains.write("CatchUp")
        assert killed.wait() == -9, killed.tail()
    finally:
        killed.close()
    assert drains.show(asked)["state"] == "Flushing"
    states = {name: query["state"] for name, query in by_name(drains.show(asked)).items()}
    assert states["first"] == "Drained"
    assert states["third"] != "Drained"

    (tmp_path / "kill-at").unlink()
    restarted = Driver("chain.py", tmp_path, store=drains, confs=confs)
    try:
        drains.reaches(asked, "Drained", driver=restarted)
        assert ids_in(tmp_path / "out") == exactly(feed.ids)
        drains.clean_up()
        assert restarted.wait() == 0, restarted.tail()
    finally:
        restarted.close()


def test_a_reader_with_a_temporary_checkpoint_is_drained_after_its_writer(warm: Warm, tmp_path: Path) -> None:
    """The reader is not frozen with the writer: what the writer flushes last goes through it all the same."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    (tmp_path / "first").mkdir()
    writer = counted(read(warm.session, tmp_path)).writeStream.queryName("first").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start(str(tmp_path / "first"), format="json").processAllAvailable()
    windows = warm.session.readStream.schema("ids ARRAY<LONG>").json(str(tmp_path / "first"))
    reader = windows.writeStream.queryName("second").foreachBatch(to_files(tmp_path / "out")).start()
    reader.processAllAvailable()
    assert 0 < ids_in(tmp_path / "out").total() < len(feed.ids)
    drain = by_name(warm.drain(checkpoint__policy="Keep"))
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
    assert {name: query["state"] for name, query in drain.items()} == {"first": "Drained", "second": "Drained"}
    assert drain["second"]["endOffsets"]
    assert not warm.session.streams.active
