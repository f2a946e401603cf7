"""Queries that are started out of the agent's sight, as a library in Java does, while the others are being drained."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import is_drain_pane
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.driver.streams import Started, writer
from tests.agent.harness import Feed, eventually, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


class Slow:
    """A query whose batches, or whose flush alone, wait to be let go."""

    def __init__(self, warm: Warm, base: Path, *, in_flush: bool) -> None:
        self.begun, self.free = threading.Event(), threading.Event()
        self.feed = Feed(base / "input")
        self.feed.add(2)
        to_sink = to_files(base / "out")

        def write(batch: DataFrame, batch_id: int) -> None:
            if is_drain_pane() == in_flush:
                self.begun.set()
                assert self.free.wait(120)
            to_sink(batch, batch_id)

        made = counted(read(warm.session, base)).writeStream.queryName("slow").option("checkpointLocation", str(base / "slow"))
        self.query = made.foreachBatch(write).start()


def test_one_that_comes_before_the_decision_is_refused_by_name(warm: Warm, tmp_path: Path) -> None:
    slow = Slow(warm, tmp_path, in_flush=False)
    assert slow.begun.wait(60)
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
        unseen = writer(warm.session, tmp_path, "unseen")._jwrite.start()
        slow.free.set()
        refused = warm.drains.reaches(asked, "Rejected", reason="UnsupportedQuery")
    assert "has not seen the start of queries unseen:" in refused["message"]
    unseen.stop()
    slow.query.processAllAvailable()
    warm.drain()
    assert ids_in(tmp_path / "out") == exactly(slow.feed.ids)


def test_a_run_of_a_known_query_is_refused_by_name(warm: Warm, tmp_path: Path) -> None:
    """It has the id of the run before it, which the agent has seen."""
    Feed(tmp_path / "input").add()
    writer(warm.session, tmp_path, "again").start().stop()
    unseen = writer(warm.session, tmp_path, "again")._jwrite.start()
    try:
        with warm.requested() as asked:
            refused = warm.drains.reaches(asked, "Rejected", reason="UnsupportedQuery")
        assert "has not seen the start of queries again:" in refused["message"]
    finally:
        unseen.stop()


def test_one_that_spark_has_refused_to_start_is_none(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two starts on one checkpoint at once (CONCURRENT_QUERY) it stays among those that run, and nobody can stop it."""
    never, listed = warm.session._jvm.java.lang.Thread(), SparkInternals._listed  # type: ignore[union-attr]
    refused = SimpleNamespace(runId=lambda: "run", name=lambda: "never", id=lambda: "id", queryExecutionThread=lambda: never)
    monkeypatch.setattr(SparkInternals, "_listed", lambda self: [*listed(self), refused])
    Feed(tmp_path / "input").add()
    writer(warm.session, tmp_path, "beside").start().processAllAvailable()
    warm.drain()


@pytest.mark.parametrize("bounded", [True, False])
def test_one_that_spark_has_refused_to_start_keeps_none_from_its_flush(warm: Warm, tmp_path: Path, bounded: bool) -> None:
    """Two starts while the run before is being stopped; seen: the flush on a work copy was refused as they are, in each try."""
    slow, begun = threading.Event(), threading.Event()
    to_sink = to_files(tmp_path / "out")

    def write(batch: DataFrame, batch_id: int) -> None:
        begun.set()
        while slow.is_set():  # where the interrupt of stop() does not come
            time.sleep(0.1)
        to_sink(batch, batch_id)

    def started() -> StreamingQuery:
        made = counted(read(warm.session, tmp_path)).writeStream.option("checkpointLocation", str(tmp_path / "one")).foreachBatch(write)
        return (made.trigger(availableNow=True) if bounded else made).start()

    feed = Feed(tmp_path / "input")
    feed.add(2)
    slow.set()
    first = started()
    assert begun.wait(60)
    starts = [Started(started) for _ in range(2)]
    time.sleep(2)
    slow.clear()
    with pytest.raises(Exception, match="CONCURRENT_QUERY"):  # either of them
        [start.result() for start in starts]
    query = next(start.result() for start in starts if not start.failed)
    assert not first.isActive
    if bounded:
        assert query.awaitTermination(60)
    else:
        query.processAllAvailable()
    warm.drain()
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def test_no_drain_is_over_while_one_runs_that_came_after_the_decision(warm: Warm, tmp_path: Path) -> None:
    slow = Slow(warm, tmp_path, in_flush=True)
    slow.query.processAllAvailable()
    with warm.requested() as asked:
        assert slow.begun.wait(60)
        unseen = writer(warm.session, tmp_path, "unseen")._jwrite.start()
        slow.free.set()
        stalled = warm.drains.reaches(asked, "Stalled", reason="UnsupportedQuery")
        assert "stop unseen" in stalled["message"]
        unseen.stop()
        eventually(lambda: warm.drains.show(asked)["state"] == "Drained", "the drain to end")
    assert ids_in(tmp_path / "out") == exactly(slow.feed.ids)
