"""Which drains an application of Spark Connect answers, and how."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from spark_drain_agent.drain.identity import Identity
from spark_drain_agent.driver.connect import answers
from spark_drain_store import DrainNotification, DrainReport, DrainState, reasons

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def missing(
    run_id: str, wanted: str | None, state: DrainState | None, reason: str = "", runs: tuple[str, ...] = ("before",)
) -> list[DrainReport]:
    notification = DrainNotification(drain_id="drain", run_id=wanted, created_at=NOW)
    reports = (
        {} if state is None else {"drain": DrainReport(drain_id="drain", runs=runs, state=state, reason=reason, updated_at=NOW, sequence=7)}
    )
    return list(answers(Identity(run_id, "", "", "4.2.0", "1"), {"drain": notification}, reports))


@pytest.mark.parametrize(
    ("run_id", "wanted", "state", "answer"),
    [
        ("run", None, None, DrainState.REJECTED),
        ("run", "run", None, DrainState.REJECTED),
        ("run", "another", None, None),
        ("", "any", None, DrainState.REJECTED),
        ("run", "before", DrainState.ACKNOWLEDGED, DrainState.REJECTED),
        ("run", "before", DrainState.STOPPING, DrainState.REJECTED),
        ("run", "before", DrainState.COMMITTING, DrainState.STALLED),
        ("run", "before", DrainState.FLUSHING, DrainState.STALLED),
        ("run", "before", DrainState.STALLED, DrainState.STALLED),
        ("run", "before", DrainState.DRAINED, None),
        ("run", "run", DrainState.REJECTED, None),
        ("run", "run", DrainState.WITHDRAWN, None),
    ],
)
def test_one_notification(run_id: str, wanted: str | None, state: DrainState | None, answer: DrainState | None) -> None:
    found = missing(run_id, wanted, state)
    assert [report.state for report in found] == ([] if answer is None else [answer])
    for report in found:
        assert report.reason == reasons.UNSUPPORTED_SESSION
        assert "Spark Connect" in report.message
        assert "spark.api.mode=classic" in report.message
        assert report.sequence == (1 if state is None else 8)
        assert report.runs == tuple(run for run in ("before" if state else "", run_id) if run)


@pytest.mark.parametrize("state", [DrainState.STALLED, DrainState.REJECTED])
def test_an_answer_is_not_repeated(state: DrainState) -> None:
    assert not missing("run", None, state, reasons.UNSUPPORTED_SESSION)
