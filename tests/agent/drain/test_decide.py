"""The run-id rules, row by row."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from spark_drain_agent.drain.decide import Assignment, decide
from spark_drain_store import DrainNotification, DrainReport, DrainState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN, OTHER = "spark-now", "spark-before"


def asked(run_id: str | None, drain_id: str = "u") -> dict[str, DrainNotification]:
    return {drain_id: DrainNotification(drain_id=drain_id, created_at=NOW, run_id=run_id)}


def answered(state: DrainState, *runs: str, drain_id: str = "u") -> dict[str, DrainReport]:
    return {drain_id: DrainReport(drain_id=drain_id, runs=runs, state=state, updated_at=NOW)}


FRESH, FORWARD = Assignment.FRESH, Assignment.FORWARD


@pytest.mark.parametrize(
    ("run_id", "reports", "journalled", "expected"),
    [
        pytest.param(None, {}, (), FRESH, id="any run, nobody answered"),
        pytest.param(RUN, {}, (), FRESH, id="this run, nobody answered"),
        pytest.param(OTHER, {}, (), None, id="another run, nobody answered: stale"),
        pytest.param(OTHER, answered(DrainState.ACKNOWLEDGED), (), None, id="another run, an answer without a run acknowledges nothing"),
        pytest.param(OTHER, {}, ("u",), FORWARD, id="another run, but a journal knows it"),
        pytest.param(OTHER, {}, ("else",), None, id="another run, a journal knows another drain"),
        pytest.param(RUN, answered(DrainState.ACKNOWLEDGED, RUN), (), FRESH, id="this run had only acknowledged"),
        pytest.param(OTHER, answered(DrainState.ACKNOWLEDGED, OTHER), (), FRESH, id="inherited before the point of no return"),
        pytest.param(OTHER, answered(DrainState.STOPPING, OTHER), (), FRESH, id="inherited while sources were frozen"),
        pytest.param(OTHER, answered(DrainState.STOPPING, OTHER), ("u",), FORWARD, id="inherited, the journal is ahead of the report"),
        pytest.param(OTHER, answered(DrainState.COMMITTING, OTHER), (), FORWARD, id="inherited at the point of no return"),
        pytest.param(OTHER, answered(DrainState.FLUSHING, OTHER), (), FORWARD, id="inherited in the flush"),
        pytest.param(OTHER, answered(DrainState.STALLED, OTHER), (), FORWARD, id="inherited stalled"),
        pytest.param(OTHER, answered(DrainState.REPORTING, OTHER), (), FORWARD, id="inherited while executors report"),
        pytest.param(OTHER, answered(DrainState.DRAINED, OTHER), (), FORWARD, id="drained and not yet let go: nothing may start"),
        pytest.param(RUN, answered(DrainState.WITHDRAWN, RUN), (), None, id="withdrawn is over"),
        pytest.param(RUN, answered(DrainState.FAILED, RUN), (), None, id="failed is over"),
        pytest.param(RUN, answered(DrainState.REJECTED, RUN), (), None, id="rejected is over"),
        pytest.param(None, answered(DrainState.REJECTED), (), None, id="malformed is over"),
    ],
)
def test_one_notification(
    run_id: str | None, reports: dict[str, DrainReport], journalled: tuple[str, ...], expected: Assignment | None
) -> None:
    decision = decide(RUN, asked(run_id), reports, journalled)
    assert (decision.assignment if decision else None) is expected
    if decision is not None:
        assert decision.report == reports.get("u")


def test_no_notification_is_no_drain_whatever_was_reported() -> None:
    assert decide(RUN, {}, answered(DrainState.DRAINED, RUN)) is None


def test_the_first_that_concerns_this_run_counts() -> None:
    notifications = {**asked(OTHER, "stale"), **asked(RUN, "over"), **asked(RUN, "mine"), **asked(None, "later")}
    decision = decide(RUN, notifications, answered(DrainState.FAILED, RUN, drain_id="over"))
    assert decision is not None
    assert decision.notification.drain_id == "mine"
