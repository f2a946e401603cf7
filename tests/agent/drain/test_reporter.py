"""The drain report: each step whole and in order, also when the store is away for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from spark_drain_agent.drain.identity import Identity
from spark_drain_agent.drain.reporter import Reporter
from spark_drain_store import Channel, DrainReport, DrainState, QueryReport

from tests.agent.driver.streams import in_thread
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
        drain_id="u",
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


def test_a_run_that_inherits_a_drained_report_was_not_later_for_that() -> None:
    channel, _, _ = fickle_channel()
    Reporter(channel, replace(ME, run_id="run-1"), "u", None).change(state=DrainState.DRAINED)
    first = stored(channel)
    assert first.drained_at == first.updated_at
    again = Reporter(channel, ME, "u", first)
    for state in (DrainState.REPORTING, DrainState.DRAINED):
        again.change(state=state)
    last = stored(channel)
    assert (last.drained_at, last.runs) == (first.drained_at, ("run-1", "run-2"))
    again.change(state=DrainState.STALLED)
    assert stored(channel).drained_at is None, "it is not drained any more"


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


def test_a_signal_handler_may_report_in_the_middle_of_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is not overwritten by what its thread was about to write."""
    channel, _, _ = fickle_channel()
    reporter, write, handled = Reporter(channel, ME, "u", None), channel.reports.write, list[bool]()

    def interrupted(entries: dict[str, str | None]) -> None:
        if not handled:
            handled.append(True)
            assert reporter.change(message="of the handler")
        write(entries)

    monkeypatch.setattr(channel.reports, "write", interrupted)
    assert in_thread(lambda: reporter.change(state=DrainState.ACKNOWLEDGED), 10)
    assert (stored(channel).sequence, stored(channel).message) == (2, "of the handler")


def test_a_sure_change_waits_for_the_store() -> None:
    channel, _, reports = fickle_channel()
    reporter = Reporter(channel, ME, "u", None)
    reports.away = True
    waits = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        reports.away = len(waits) < 3
        return False

    assert reporter.change_surely(wait, state=DrainState.DRAINED)
    assert stored(channel).state is DrainState.DRAINED
    assert len(waits) == 3
    assert all(seconds > 0 for seconds in waits)


def test_a_sure_change_ends_where_nobody_asks_any_more(caplog: pytest.LogCaptureFixture) -> None:
    channel, _, reports = fickle_channel()
    reports.away = True
    answers = iter([False, False, True])
    with caplog.at_level(logging.WARNING):
        assert not Reporter(channel, ME, "u", None).change_surely(lambda _: next(answers), state=DrainState.WITHDRAWN)
    assert reports.refused == 3
    assert caplog.text.count("could not be written yet, and is tried again") == 1, "what is the same is said once"


def large(queries: int, offsets: int, warnings: int = 0) -> tuple[QueryReport, ...]:
    return tuple(
        QueryReport(
            id=f"00000000-0000-0000-0000-{number:012}",
            name=f"query-{number}",
            state="Drained",
            checkpoint_location=f"s3a://bucket/checkpoints/query-{number}",
            checkpoint_policy="Reseed",
            archive=f"s3a://bucket/checkpoints/query-{number}/_drain/gen-0",
            last_batch_id=number,
            end_offsets={"KafkaV2[Subscribe[orders]]": "9" * offsets} if offsets else {},
            warnings=("w" * warnings,),
            message="a message",
        )
        for number in range(queries)
    )


@pytest.mark.parametrize(
    ("queries", "offsets", "warnings", "left_out", "still_there"),
    [
        (3, 1000, 100, "", lambda query: query.end_offsets and query.warnings),
        (1500, 10, 400, "operators and warnings of queries", lambda query: query.end_offsets and not query.warnings),
        (3, 2_000_000, 0, "endOffsets longer than 2000 characters", lambda query: "/_drain/gen-0/offsets/" in query.message),
        (1500, 600, 0, "all endOffsets", lambda query: not query.end_offsets and query.archive and "left out" in query.message),
        (2000, 600, 0, "all of a query but its state", lambda query: query.checkpoint_location and query.state == "Drained"),
        (4000, 0, 0, "the queries", lambda query: "4000 queries left out, 0 of them not drained" in query.message),
    ],
)
def test_a_report_that_the_store_does_not_take_is_shrunk_and_says_so(
    queries: int, offsets: int, warnings: int, left_out: str, still_there: Callable[[QueryReport], object]
) -> None:
    channel, _, reports = fickle_channel()
    reporter = Reporter(channel, ME, "u", None)
    reporter.change_surely(
        lambda _: pytest.fail("a report that is too large is not written by waiting"),
        state=DrainState.DRAINED,
        message="drained",
        queries=large(queries, offsets, warnings),
    )
    report = stored(channel)
    assert (report.state, report.message.startswith("drained")) == (DrainState.DRAINED, True)
    assert left_out in report.message
    assert ("left out" in report.message) == bool(left_out)
    assert len(report.queries) == (1 if queries == 4000 else queries)
    assert all(still_there(query) for query in report.queries)
    texts = [str(changes) for changes in reports.written]
    assert len(texts) == len(set(texts)), "nothing that was too large is tried again unchanged"
    assert reporter.report.queries[0].end_offsets == large(1, offsets)[0].end_offsets, "what is left out of the store is not forgotten here"


def test_queries_that_are_left_out_unfinished_keep_the_drain_from_looking_ended() -> None:
    channel, _, _ = fickle_channel()
    queries = tuple(replace(query, state="Flushing") for query in large(4000, 0))
    Reporter(channel, ME, "u", None).change(state=DrainState.FLUSHING, queries=queries)
    assert [query.state for query in stored(channel).queries] == ["Flushing"]


def test_reports_of_ended_drains_make_room() -> None:
    """Many small reports fill the store as well: those whose notifications are gone may go, those that somebody still reads may not."""
    channel, requests, reports = fickle_channel()
    for name in ("read", "over"):
        report = DrainReport(drain_id=name, runs=("run-1",), state=DrainState.DRAINED, updated_at=datetime.now(UTC), message="m" * 523_800)
        reports.write({f"drain-v1.{name}": report.to_json()})
    requests.write({"drain-v1.read": "{}"})
    assert Reporter(channel, ME, "u", None).change(state=DrainState.DRAINED, queries=large(3, 100))
    assert set(channel.reports.read().entries) == {"read", "u"}


def test_a_full_store_is_waited_for() -> None:
    channel, requests, reports = fickle_channel()
    report = DrainReport(drain_id="read", runs=(), state=DrainState.DRAINED, updated_at=datetime.now(UTC), message="m" * 1_048_000)
    reports.write({"drain-v1.read": report.to_json()})
    requests.write({"drain-v1.read": "{}"})

    def wait(seconds: float) -> bool:
        reports.write({"drain-v1.read": None})
        return False

    Reporter(channel, ME, "u", None).change_surely(wait, state=DrainState.DRAINED)
    assert stored(channel).state is DrainState.DRAINED
