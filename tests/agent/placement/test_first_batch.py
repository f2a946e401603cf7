"""The first batch after a replacement is told beside an ordinary one."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.clock import utc_now
from spark_drain_agent.placement.first_batch import FirstBatch

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Feed
from tests.agent.warm import Warm
from tests.support.waiting import eventually

_LONG = timedelta(milliseconds=500)


def test_the_first_batch_is_awaited_and_told(warm: Warm, tmp_path: Path) -> None:
    feed, block = Feed(tmp_path / "input"), tmp_path / "block"
    query = started(warm, tmp_path, block)
    try:
        feed.add(3)
        query.processAllAvailable()
        first_batch, since = FirstBatch(lambda: [query]), utc_now()
        assert first_batch.slowest(since) is None
        eventually(lambda: not first_batch.is_expected(since), what="there is nothing to do")
        block.touch()
        feed.add()
        eventually(block.with_name("blocked").exists, what="the batch is under way")
        assert first_batch.is_expected(since)
        eventually(lambda: utc_now() > since + _LONG, what="the batch takes its time")
        block.unlink()
        query.processAllAvailable()
        cost = eventually(lambda: first_batch.slowest(since), what="its progress")
        assert not first_batch.is_expected(since)
        assert cost.query == "counted"
        assert cost.milliseconds > 0
        assert cost.ordinary > 0
    finally:
        query.stop()
    assert not first_batch.is_expected(utc_now())


def test_a_few_batches_do_not_tell_what_is_ordinary(warm: Warm, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "input")
    query = started(warm, tmp_path, tmp_path / "block")
    try:
        feed.add(2)
        query.processAllAvailable()
        first_batch, since = FirstBatch(lambda: [query]), utc_now()
        feed.add()
        query.processAllAvailable()
        assert first_batch.slowest(since) is None
    finally:
        query.stop()


def started(warm: Warm, base: Path, block: Path) -> StreamingQuery:
    writer = counted(read(warm.session, base)).writeStream.outputMode("update").option("checkpointLocation", str(base / "checkpoint"))
    return writer.foreachBatch(to_files(base / "out", block=block)).start(queryName="counted")
