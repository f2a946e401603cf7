"""Queries that end by themselves beside others that do not: those read on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.driver.streams import Started, start, writer
from tests.agent.harness import Feed, eventually, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class Gate:
    """A bounded query's batch, which waits until it is let go."""

    def __init__(self) -> None:
        self.begun, self.free = threading.Event(), threading.Event()

    def __call__(self, _: DataFrame, __: int) -> None:
        self.begun.set()
        assert self.free.wait(200)


@pytest.fixture
def gates() -> Iterator[list[Gate]]:
    made = [Gate(), Gate()]
    yield made
    for gate in made:
        gate.free.set()


def bounded(warm: Warm, base: Path, name: str, gate: Gate) -> StreamingQuery:
    query = writer(warm.session, base, name, gate).trigger(availableNow=True).start()
    assert gate.begun.wait(60)
    return query


def test_a_query_reads_on_while_a_drain_waits_for_bounded_ones(warm: Warm, tmp_path: Path, gates: list[Gate]) -> None:
    """Also when another one is started before the first one has ended, as by several loops that each run one after the other."""
    feed, out = Feed(tmp_path / "input"), tmp_path / "out" / "steady"
    feed.add()
    start(warm.session, tmp_path, "steady")
    eventually(lambda: ids_in(out) == exactly(feed.ids), "the first file")
    bounded(warm, tmp_path, "one", gates[0])
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
        feed.add()
        eventually(lambda: ids_in(out) == exactly(feed.ids), "the query beside to read on", 60)
        bounded(warm, tmp_path, "two", gates[1])
        gates[0].free.set()
        eventually(lambda: "'two'" in warm.drains.show(asked)["message"], "the drain to wait for the other one", 60)
        feed.add()
        eventually(lambda: ids_in(out) == exactly(feed.ids), "the query beside to read on", 60)
        gates[1].free.set()
        warm.drains.reaches(asked, "Drained")
        assert ids_in(out) == exactly(feed.ids)


def test_one_that_is_stopped_is_drained_where_it_stands(warm: Warm, tmp_path: Path) -> None:
    """What it has not read is left to its next start."""
    feed, block = Feed(tmp_path / "input"), tmp_path / "block"
    feed.add(4)
    block.touch()

    def begin() -> StreamingQuery:
        windows = counted(read(warm.session, tmp_path), width="1 second").writeStream.queryName("stopped").trigger(availableNow=True)
        return (
            windows.option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(to_files(tmp_path / "out", block=block)).start()
        )

    query = begin()
    eventually((tmp_path / "blocked").exists, "a batch to run")
    with warm.requested(queries="stopped", afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
        stopping = Started(query.stop)
        block.unlink()
        stopping.result(60)
        drain = warm.drains.reaches(asked, "Drained")
    (report,) = drain["queries"]
    assert len(ids_in(tmp_path / "out")) < len(feed.ids)
    assert all('"logOffset":3' not in offset for offset in report["endOffsets"].values())
    begin().awaitTermination()
    warm.drain()
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
