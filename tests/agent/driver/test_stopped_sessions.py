"""Stops of Spark: only that of the session which the agent belongs to has to do with its drains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.agent.apps.sinks import read
from tests.agent.driver.streams import in_thread, start
from tests.agent.harness import Feed, eventually, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def stopped(warm: Warm) -> Iterator[SparkSession]:
    """A session that was stopped, and after which the application has made another one."""
    session = warm.session
    session.stop()
    warm.again()
    yield session
    for query in warm.session.streams.active:
        query.stop()
    warm.session.stop()  # PySpark has forgotten this one when the first was stopped once more
    warm.again()


@pytest.mark.parametrize("holder", ["session", "context"])
def test_a_session_that_is_stopped_again_keeps_no_drain_from_holding(
    warm: Warm, tmp_path: Path, stopped: SparkSession, holder: str
) -> None:
    """As a finally or a context manager does it; plain PySpark's queries do not notice either."""
    again: SparkSession | SparkContext = stopped if holder == "session" else stopped.sparkContext
    feed = Feed(tmp_path / "input")
    feed.add(2)
    files = read(warm.session, tmp_path).selectExpr("array(id) AS ids").writeStream.option("checkpointLocation", f"{tmp_path}/checkpoint")
    files.format("json").start(f"{tmp_path}/out").processAllAvailable()
    in_thread(again.stop)
    assert not warm.agent.gate.leaving
    feed.add()
    with warm.requested() as asked:
        warm.drains.reaches(asked, "Drained")
        in_thread(again.stop)  # does not wait for the drain
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def test_a_drain_that_cannot_hold_gives_the_queries_back_and_says_why(warm: Warm, tmp_path: Path) -> None:
    """Spark may take long to stop, and the end of a program too."""
    feed, out = Feed(tmp_path / "input"), tmp_path / "out/one"
    feed.add(2)
    query = start(warm.session, tmp_path, "one")
    query.processAllAvailable()
    try:
        assert warm.agent.gate.leave()
        with warm.requested() as asked:
            drain = eventually(lambda: (shown := warm.drains.show(asked))["message"] and shown, "the drain to say why")
            assert (drain["state"], drain["message"].startswith("the application is stopping Spark, or ends")) == ("Stopping", True)
            feed.add()
            in_thread(query.processAllAvailable)
            assert ids_in(out) == exactly(feed.ids)
            warm.drains.withdraw(asked)
            warm.drains.reaches(asked, "Withdrawn")
    finally:
        warm.agent.gate._leaving = False
    warm.drain()
    assert ids_in(out) == exactly(feed.ids)
