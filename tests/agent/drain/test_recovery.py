"""What the report of an interrupted drain says when a start without a request has ended it."""

from datetime import UTC, datetime

import pytest
from spark_drain_agent.drain.recovery import report_ended
from spark_drain_store import Channel, DrainNotification, DrainReport, DrainState, QueryReport
from spark_drain_store.drains import Drains

NOW = datetime(2026, 11, 24, tzinfo=UTC)


def interrupted(*states: str, state: DrainState = DrainState.FLUSHING) -> Channel:
    """Return a store with the report of a drain whose queries, at /0 and on, are so far."""
    channel = Channel.in_memory()
    queries = tuple(QueryReport(id=str(at), state=each, checkpoint_location=f"/{at}") for at, each in enumerate(states))
    report = DrainReport(drain_id="d", runs=("spark-1",), state=state, updated_at=NOW, queries=queries)
    channel.reports.write({"d": report.to_json()})
    return channel


@pytest.mark.parametrize("states", [("Flushing",), ("Flushing", "Drained"), ("Stalled", "Drained", "Drained")])
def test_the_report_goes_with_the_last_query(states: tuple[str, ...]) -> None:
    channel = interrupted(*states)
    report_ended(channel, "d", "/0", DrainState.DRAINED)
    assert Drains.read(channel).reports == {}


def test_until_then_it_says_which_are_done() -> None:
    channel = interrupted("Flushing", "Flushing", "Drained")
    report_ended(channel, "d", "/1", DrainState.WITHDRAWN)
    report = Drains.read(channel).reports["d"]
    assert [query.state for query in report.queries] == ["Flushing", "Withdrawn", "Drained"]
    assert (report.state, report.sequence) == (DrainState.FLUSHING, 2)
    report_ended(channel, "d", "/elsewhere", DrainState.DRAINED)
    assert Drains.read(channel).reports["d"].queries == report.queries
    report_ended(channel, "d", "/0", DrainState.DRAINED)
    assert Drains.read(channel).reports == {}


@pytest.mark.parametrize("state", [DrainState.DRAINED, DrainState.FAILED])
def test_the_report_of_a_drain_that_is_over_stays(state: DrainState) -> None:
    channel = interrupted("Drained", state=state)
    report_ended(channel, "d", "/0", DrainState.DRAINED)
    assert set(Drains.read(channel).reports) == {"d"}


def test_the_report_of_a_drain_that_is_asked_for_is_left_to_it() -> None:
    channel = interrupted("Flushing")
    channel.requests.write({"d": DrainNotification(drain_id="d", created_at=NOW).to_json()})
    report_ended(channel, "d", "/0", DrainState.DRAINED)
    assert Drains.read(channel).reports["d"].queries[0].state == "Flushing"


def test_another_drain_is_not_touched() -> None:
    channel = interrupted("Flushing")
    report_ended(channel, "another", "/0", DrainState.DRAINED)
    assert set(Drains.read(channel).reports) == {"d"}
