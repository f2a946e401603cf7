"""Queries that end by themselves beside others that do not: those read on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tests.agent.driver.streams import start, writer
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
