"""A drain whose flush keeps failing, and whose request is removed: the application fails, as for any batch, and its next start goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.checkpoint import flush
from spark_drain_agent.drain import after_commit
from spark_drain_agent.queries.flush_launch import RecoveryNeedsPreviousVersionError

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Drains, Driver, Feed, eventually, exactly, ids_in
from tests.agent.stores import refused
from tests.agent.warm import Warm
from tests.support.own_jvm import session_confs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Start = Callable[[], Driver]


def start_in(warm: Warm, base: Path, name: str, *keys: Column, bounded: bool = False) -> StreamingQuery:
    made = counted(read(warm.session, base), *keys)
    writer = made.writeStream.queryName(name).option("checkpointLocation", str(base / "checkpoints" / name))
    writer = writer.foreachBatch(to_files(base / "out" / name, poison=base / f"poison-{name}"))
    query = (writer.trigger(availableNow=True) if bounded else writer).start()
    query.processAllAvailable()
    return query


def test_a_drain_whose_reports_cannot_be_written_goes_on_once_its_request_is_removed(warm: Warm, tmp_path: Path) -> None:
    """Past its point of no return it waits until the next run would know of it; without the request there is nothing to know."""
    feed = Feed(tmp_path / "input")
    feed.add(3)
    query = start_in(warm, tmp_path, "orders")
    with refused(warm.agent.channel, "Committing") as found, warm.requested():
        eventually(lambda: len(found) > 2, "the report to be tried again")
        assert query.isActive
    assert not query.isActive
    assert ids_in(tmp_path / "out/orders") == exactly(feed.ids)


@pytest.mark.parametrize("way", [pytest.param("Auto", marks=pytest.mark.soak), "WorkCopy"])
def test_every_wait_tells_and_the_next_start_finishes_it(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(after_commit, "_RETRY_SECONDS", (0.1,))
    warm.session.conf.set("spark.sparkdrain.flush", way)
    feed, streams, poison = Feed(tmp_path / "input"), warm.session.streams, tmp_path / "poison-broken"
    feed.add(3)
    broken, well = (start_in(warm, tmp_path, name) for name in ("broken", "well"))
    poison.touch()
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Stalled", reason="FlushFailed")
        assert broken.awaitTermination(1) is False
        assert broken.exception() is None
    waits: list[Callable[[], object]] = [
        broken.awaitTermination,
        lambda: broken.awaitTermination(5),
        broken.processAllAvailable,
        well.awaitTermination,  # or a program that waits for this one would end as if nothing was left to do
        streams.awaitAnyTermination,
        lambda: streams.awaitAnyTermination(5),
    ]
    for wait in waits:
        with pytest.raises(
            StreamingQueryException,
            match=r"given up, .*; the next start of the same version finishes or undoes what was begun; query 'broken': .*poisonous",
        ) as failed:
            wait()
        assert isinstance(failed.value.__cause__, StreamingQueryException)
    assert "this window is poisonous" in str(broken.exception())
    streams.resetTerminated()
    assert streams.awaitAnyTermination(1) is False

    poison.unlink()
    for name in ("broken", "well"):
        again = start_in(warm, tmp_path, name)
        assert ids_in(tmp_path / "out" / name) == exactly(feed.ids)
        assert again.exception() is None
    warm.drain()
    warm.session.conf.unset("spark.sparkdrain.flush")


def test_a_flush_is_not_tried_where_no_thread_starts_any_more(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.12 on, once main has ended: the batch would wait for ever, and the application with it."""
    monkeypatch.setattr(after_commit, "_RETRY_SECONDS", (0.1,))
    feed, poison = Feed(tmp_path / "input"), tmp_path / "poison-broken"
    feed.add(3)
    broken = start_in(warm, tmp_path, "broken")
    poison.touch()
    with monkeypatch.context() as ended:
        with warm.requested() as asked:
            warm.drains.reaches(asked, "Stalled", reason="FlushFailed")
            ended.setattr(flush, "no_thread_starts", lambda: True)
            eventually(lambda: warm.drains.show(asked)["reason"] == "UnsupportedSession", "it to say so")
            assert warm.drains.show(asked)["message"].endswith("End the program: the next start of the same version finishes it")
            poison.unlink()
        with pytest.raises(StreamingQueryException, match="main has ended"):
            broken.awaitTermination()
    start_in(warm, tmp_path, "broken")
    assert ids_in(tmp_path / "out/broken") == exactly(feed.ids)
    warm.drain()


@pytest.mark.parametrize("bounded", [pytest.param(False, id="running", marks=pytest.mark.soak), pytest.param(True, id="bounded")])
def test_no_later_drain_says_that_it_is_drained(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounded: bool) -> None:
    monkeypatch.setattr(after_commit, "_RETRY_SECONDS", (0.1,))
    feed, poison = Feed(tmp_path / "input"), tmp_path / "poison-broken"
    feed.add(3)
    with session_confs(warm.session, {"spark.sparkdrain.flush": "WorkCopy"}):
        start_in(warm, tmp_path, "well")
        start_in(warm, tmp_path, "broken", bounded=bounded)
        poison.touch()
        with warm.requested(queries="broken", afterDrain="Keep") as asked:
            warm.drains.reaches(asked, "Stalled", reason="FlushFailed")
        poison.unlink()
        told = "an earlier drain of query 'broken' was given up in the middle"
        assert told in failed(warm)
        warm.forget()
        with pytest.raises(RecoveryNeedsPreviousVersionError):  # a later run starts another version, and goes on without it
            start_in(warm, tmp_path, "broken", F.col("id") % 2)
        start_in(warm, tmp_path, "well")
        assert told in failed(warm)
        assert told in warm.drain("Stop")["message"]
        for name in ("broken", "well"):
            start_in(warm, tmp_path, name)
        assert ids_in(tmp_path / "out" / "broken") == exactly(feed.ids)
        warm.drain()
    for name in ("broken", "well"):
        assert ids_in(tmp_path / "out" / name) == exactly(feed.ids)


def failed(warm: Warm) -> str:
    with warm.requested() as asked:
        drain = warm.drains.reaches(asked, "Failed")
        assert drain["reason"] == "QueryFailed"
        return str(drain["message"])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    drivers: list[Driver] = []

    def make() -> Driver:
        drivers.append(Driver("windows.py", tmp_path, store=Drains(tmp_path / "store")))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.close()


@pytest.mark.soak
def test_a_driver_that_has_taken_the_drain_over_fails_too_until_a_start_can_finish_it(tmp_path: Path, start: Start) -> None:
    """With a restart policy of OnFailure an exit code of 0 would mean that nothing is left to do."""
    feed, drains, poison = Feed(tmp_path / "input"), Drains(tmp_path / "store"), tmp_path / "poison"
    feed.add(3)
    poison.touch()
    driver = start()
    eventually((tmp_path / "checkpoint/commits/2").exists, "three files", alive=driver)
    asked = drains.write()
    known = [query["id"] for query in drains.reaches(asked, "Stalled", driver=driver)["queries"]]
    driver.kill()
    driver.wait()
    second = start()
    waits = f"waits until .* has the lease file:{tmp_path}/checkpoint/_drain/lease and may be alive"
    eventually(lambda: re.search(waits, drains.show(asked)["message"]), "it to say what it waits for", alive=second)
    assert drains.show(asked)["reason"] == "CheckpointLeased"
    assert [query["id"] for query in drains.show(asked)["queries"]] == known, "it is not started before the lease is there"
    eventually(lambda: len(drains.show(asked)["runs"]) == 2 and drains.show(asked)["state"] == "Stalled", "it to stall again", alive=second)
    drains.clean_up(everything=True)
    assert second.wait() == 1, second.tail()
    assert "this window is poisonous" in second.log.rsplit("StreamingQueryException: drain", 1)[-1]
    assert not (tmp_path / "main-returned").exists()
    third = start()
    assert third.wait() == 1, third.tail()
    poison.unlink()
    fourth = start()
    eventually(lambda: ids_in(tmp_path / "out") == exactly(feed.ids), "the flush to be finished", alive=fourth)
    drains.reaches(drains.write(), "Drained", driver=fourth)
    drains.clean_up()
    assert fourth.wait() == 0, fourth.tail()
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
