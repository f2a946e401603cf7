"""A drain of some queries changes nothing for the others: they fail, stop, start and end the program as without it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.driver.held_query import HeldQuery

from tests.agent.driver.streams import Started, in_thread, start
from tests.agent.harness import Drains, Driver, Feed, eventually, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class Beside:
    """One query that is drained and one that is kept, and fails when a file says so."""

    def __init__(self, warm: Warm, base: Path) -> None:
        self.warm, self.base = warm, base
        self.feed = Feed(base / "input")
        self.feed.add(2)
        self.drained = start(warm.session, base, "drained")
        self.kept = start(warm.session, base, "kept", self._fail)
        for query in (self.drained, self.kept):
            query.processAllAvailable()

    def _fail(self, batch: DataFrame, batch_id: int) -> None:
        if (self.base / "fail").exists():
            raise ValueError("the sink of 'kept' is away")
        while (self.base / "block").exists():
            (self.base / "blocked").touch()
            time.sleep(0.05)

    def fail(self) -> None:
        """Let the kept query fail in its next batch."""
        (self.base / "fail").touch()
        self.feed.add()

    @contextmanager
    def drain(self) -> Iterator[None]:
        """Hold one query past the point of no return, drained."""
        with self.warm.requested(queries="drained", afterDrain="Keep") as asked:
            self.warm.drains.reaches(asked, "Drained")
            yield


@pytest.fixture
def beside(warm: Warm, tmp_path: Path) -> Beside:
    return Beside(warm, tmp_path)


def test_a_failure_reaches_those_who_wait_while_the_drain_holds(beside: Beside, warm: Warm) -> None:
    with beside.drain():
        alone, any_of_them = Started(beside.kept.awaitTermination), Started(warm.session.streams.awaitAnyTermination)
        on_drained = Started(beside.drained.awaitTermination)
        beside.fail()
        for waiting in (alone, any_of_them):
            with pytest.raises(StreamingQueryException, match="the sink of 'kept' is away"):
                waiting.result()
        assert not beside.kept.isActive
        assert beside.kept.exception() is not None
        assert beside.drained.isActive
        assert not on_drained.over
    assert on_drained.result() is None
    with pytest.raises(StreamingQueryException, match="the sink of 'kept' is away"):
        warm.session.streams.awaitAnyTermination(60)


def test_a_failure_after_the_drain_reaches_who_waits_for_any(beside: Beside, warm: Warm) -> None:
    with beside.drain():
        pass
    waiting = Started(warm.session.streams.awaitAnyTermination)
    beside.fail()
    with pytest.raises(StreamingQueryException, match="the sink of 'kept' is away"):
        waiting.result()


@pytest.mark.parametrize("how", ["failed", "stopped"])
def test_an_end_that_main_has_not_asked_for_yet_reaches_it_after_the_drain(beside: Beside, warm: Warm, tmp_path: Path, how: str) -> None:
    """The query runs again: only Spark remembers its end."""
    if how == "failed":
        beside.fail()
        with pytest.raises(StreamingQueryException):
            in_thread(beside.kept.processAllAvailable)
        (tmp_path / "fail").unlink()
    else:
        beside.kept.stop()
    start(warm.session, tmp_path, "kept").processAllAvailable()
    with beside.drain():
        pass
    if how == "failed":
        with pytest.raises(StreamingQueryException, match="the sink of 'kept' is away"):
            in_thread(lambda: warm.session.streams.awaitAnyTermination(10))
    else:
        assert in_thread(lambda: warm.session.streams.awaitAnyTermination(10)) is True
    warm.session.streams.resetTerminated()
    assert in_thread(lambda: warm.session.streams.awaitAnyTermination(1)) is False


def test_a_later_drain_does_not_call_a_drained_query_stopped(beside: Beside, warm: Warm) -> None:
    with beside.drain():
        pass
    assert warm.drain()["message"] == "1 query drained; an earlier drain has ended query 'drained': what has come since was not read"


def test_a_stop_is_a_stop(beside: Beside, warm: Warm) -> None:
    with beside.drain():
        waiting = Started(warm.session.streams.awaitAnyTermination)
        in_thread(beside.kept.stop)
        assert not beside.kept.isActive
        assert waiting.result() is None
        warm.session.streams.resetTerminated()
        assert in_thread(lambda: warm.session.streams.awaitAnyTermination(1)) is False


def test_a_query_that_is_stopped_in_its_last_batch_has_not_ended_yet(beside: Beside, warm: Warm, tmp_path: Path) -> None:
    streams, block = warm.session.streams, tmp_path / "block"
    with beside.drain():
        block.touch()
        beside.feed.add()
        eventually((tmp_path / "blocked").exists, "the last batch")
        waiting, stopping = Started(streams.awaitAnyTermination), Started(beside.kept.stop)
        eventually(lambda: not beside.kept.isActive, "the stop")
        in_thread(streams.resetTerminated)  # which is about those that have ended
        assert in_thread(lambda: streams.awaitAnyTermination(1)) is False
        assert not waiting.over
        block.unlink()
        stopping.result()
        assert waiting.result() is None


def test_another_query_really_starts(beside: Beside, warm: Warm, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with beside.drain():
        unrelated = in_thread(lambda: start(warm.session, tmp_path, "unrelated"))
        assert not isinstance(unrelated, HeldQuery)
        in_thread(unrelated.processAllAvailable)
        assert ids_in(tmp_path / "out/unrelated") == exactly(beside.feed.ids)
        held = in_thread(lambda: start(warm.session, tmp_path, "drained"))
        assert isinstance(held, HeldQuery)
        assert "query 'drained' is kept from starting until the drain's request is removed" in caplog.text
        assert "query 'unrelated' is kept" not in caplog.text
        beside.feed.add()
        in_thread(unrelated.processAllAvailable)
        active: list[StreamingQuery] = warm.session.streams.active
        assert {query.name for query in active} == {"drained", "kept", "unrelated"}
    assert ids_in(tmp_path / "out/unrelated") == exactly(beside.feed.ids)
    assert {query.name for query in warm.session.streams.active} == {"kept", "unrelated"}
    unrelated.stop()
    start(warm.session, tmp_path, "drained").processAllAvailable()
    assert ids_in(tmp_path / "out/drained") == exactly(beside.feed.ids)


@pytest.mark.parametrize(("how", "code"), [("fail", 1), pytest.param("leave", 3, marks=pytest.mark.soak)])
def test_main_ends_as_without_a_drain(tmp_path: Path, how: str, code: int) -> None:
    """The request is still there: a drain that keeps the application running does not keep it from ending."""
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add(2)
    driver = Driver("beside.py", tmp_path, store=drains)
    try:
        eventually(lambda: ids_in(tmp_path / "out/kept") == exactly(feed.ids), "the queries to read", alive=driver)
        asked = drains.write(queries="drained", afterDrain="Keep")
        drains.reaches(asked, "Drained", driver=driver)
        (tmp_path / how).touch()
        feed.add()
        assert driver.wait(60) == code, driver.tail()
        assert drains.show(asked)["state"] == "Drained"
    finally:
        driver.close()
