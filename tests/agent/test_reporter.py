"""The drain report: each step whole and in order, also when the store is away for a while."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from spark_drain_agent.identity import Identity
from spark_drain_agent.reporter import Reporter
from spark_drain_store import Channel, DrainReport, DrainState, QueryReport

from tests.agent.stores import fickle_channel

ME = Identity(run_id="run-2", pod_name="driver", pod_uid="uid-2", spark_version="4.2.0", agent_version="0.1.0")


def stored(channel: Channel) -> DrainReport:
    return DrainReport.from_json("u", channel.reports.read().entries["u"])


def test_every_change_is_written_whole_with_a_growing_sequence() -> None:
    channel, _, _ = fickle_channel()
    reporter = Reporter(channel, ME, "u", None)
    assert not channel.reports.read().entries, "nothing is said before the first step"
    assert reporter.change(state=DrainState.ACKNOWLEDGED)
    first = stored(channel)
    assert (first.sequence, first.runs, first.driver_pod_uid, first.spark_version) == (1, ("run-2",), "uid-2", "4.2.0")
    reporter.change(state=DrainState.STOPPING, message="stopping")
    reporter.change(state=DrainState.COMMITTING)
    last = stored(channel)
    assert (last.sequence, last.state, last.message) == (3, DrainState.COMMITTING, "stopping")


@pytest.mark.parametrize(
    ("runs", "expected"), [(("run-1",), ("run-1", "run-2")), (("run-1", "run-2"), ("run-1", "run-2")), ((), ("run-2",))]
)
def test_an_inherited_report_is_carried_on(runs: tuple[str, ...], expected: tuple[str, ...]) -> None:
    channel, _, _ = fickle_channel()
    inherited = DrainReport(
        uuid="u",
        runs=runs,
        state=DrainState.FLUSHING,
        updated_at=datetime.now(UTC),
        queries=(QueryReport(id="q"),),
        driver_pod_uid="uid-1",
        sequence=7,
    )
    Reporter(channel, ME, "u", inherited).change(message="goes on")
    report = stored(channel)
    assert (report.runs, report.sequence, report.driver_pod_uid, report.queries) == (expected, 8, "uid-2", inherited.queries)


def test_what_could_not_be_written_is_written_later_as_it_is_then() -> None:
    channel, _, reports = fickle_channel()
    reporter = Reporter(channel, ME, "u", None)
    reporter.change(state=DrainState.ACKNOWLEDGED)
    reports.away = True
    assert not reporter.change(state=DrainState.STOPPING)
    assert not reporter.change(state=DrainState.COMMITTING)
    assert not reporter.retry()
    reports.away = False
    assert stored(channel).state is DrainState.ACKNOWLEDGED
    assert reporter.retry()
    assert (stored(channel).state, stored(channel).sequence) == (DrainState.COMMITTING, 3)
    assert reporter.retry(), "nothing is left to write"


def test_a_sure_change_waits_for_the_store() -> None:
    channel, _, reports = fickle_channel()
    reporter = Reporter(channel, ME, "u", None)
    reports.away = True
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        reports.away = len(waits) < 3

    reporter.change_surely(wait, state=DrainState.DRAINED)
    assert stored(channel).state is DrainState.DRAINED
    assert len(waits) == 3
    assert all(seconds > 0 for seconds in waits)


def test_a_sure_change_can_be_given_up() -> None:
    channel, _, reports = fickle_channel()
    reports.away = True

    def give_up(seconds: float) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        Reporter(channel, ME, "u", None).change_surely(give_up, state=DrainState.WITHDRAWN)
    assert reports.refused == 1
