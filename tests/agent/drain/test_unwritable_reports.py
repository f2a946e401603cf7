"""A drain of which nobody can be told: requests can be read, and no report can be written, as on a full disk or for want of a right."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_drain_agent.drain import last_look

from tests.agent.driver.streams import in_thread, start
from tests.agent.harness import Feed, eventually, exactly, ids_in
from tests.agent.stores import refused
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.parametrize("word", ["Acknowledged", "Stopping"])
def test_the_queries_read_on_and_removing_the_request_ends_it(
    warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setattr(last_look, "_PATIENCE_SECONDS", 0.0)
    feed = Feed(tmp_path / "input")
    feed.add(2)
    query = start(warm.session, tmp_path, "orders")
    query.processAllAvailable()
    with refused(warm.agent.channel, word) as found, warm.requested():
        eventually(lambda: len(found) > 2, "the report to be tried again")
        feed.add(2)
        eventually(lambda: ids_in(tmp_path / "out/orders") == exactly(feed.ids), "the query to read on")
    feed.add(2)
    in_thread(query.processAllAvailable)
    assert query.isActive
    assert ids_in(tmp_path / "out/orders") == exactly(feed.ids)


@pytest.mark.parametrize("word", ["Acknowledged", "Stopping"])
def test_it_is_drained_once_reports_can_be_written(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setattr(last_look, "_PATIENCE_SECONDS", 0.0)
    feed = Feed(tmp_path / "input")
    feed.add(2)
    query = start(warm.session, tmp_path, "orders")
    query.processAllAvailable()
    with warm.requested() as asked:
        with refused(warm.agent.channel, word) as found:
            eventually(lambda: len(found) > 2, "the report to be tried again")
        warm.drains.reaches(asked, "Drained")
    assert not query.isActive
    assert ids_in(tmp_path / "out/orders") == exactly(feed.ids)
