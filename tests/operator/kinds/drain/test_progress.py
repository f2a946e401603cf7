"""The agent's report in the words of the status."""

import json
from datetime import UTC, datetime

import pytest
from spark_drain_operator.kinds.drain import progress
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_store import DrainReport, DrainState, QueryReport
from spark_drain_store.messages import ExecutorException, OperatorReport

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_huge_report_is_cut_to_what_the_schema_takes() -> None:
    queries = tuple(
        QueryReport(id=f"q{number}", message="m" * 5000, last_batch_id=-1, end_offsets={"long": "x" * 9000, "short": "{}"})
        for number in range(99)
    )
    report = DrainReport(
        drain_id="u",
        runs=("r",),
        state=DrainState.DRAINED,
        updated_at=NOW,
        queries=queries + queries[:1],
        executors_expected=10000,
        executors_drained="1-9999",
        executor_exceptions=tuple(ExecutorException(id=str(number), state="Gone") for number in range(80)),
        timings={f"step{number}": 0.5 for number in range(99)},
    )
    status = DrainStatus(generation=1, now=NOW)
    progress.fill(status, report)
    assert len(status.queries) == 32
    assert len(status.executor_exceptions) == 50
    assert len(status.timings) == 32
    assert status.queries[0]["endOffsets"] == [{"source": "short", "offset": "{}"}]
    assert len(status.queries[0]["message"]) == 1024
    assert "lastBatchId" not in status.queries[0]
    assert status.progress["executors"] == "9999/10000"
    assert set(progress.end_offsets(report)) == {f"q{number}" for number in range(99)}


@pytest.mark.parametrize("letter", ["<", "x", "ü", "\U0001f600", '"', "\\"])
def test_what_is_reported_fits_into_etcd(letter: str) -> None:
    """Go writes some letters with six bytes, and a list's keys are in managedFields once more."""
    offsets = {f"{number:02d}{letter * 1000}": "{}" for number in range(16)}
    queries = tuple(QueryReport(id=f"q{number}", end_offsets=offsets) for number in range(32))
    status = DrainStatus(generation=1, now=NOW)
    progress.fill(status, DrainReport(drain_id="u", runs=("r",), state=DrainState.DRAINED, updated_at=NOW, queries=queries))
    assert status.queries
    stored = json.dumps(status.queries).replace("<", r"\u003c")
    keys = json.dumps([json.dumps(item["source"]).replace("<", r"\u003c") for query in status.queries for item in query["endOffsets"]])
    assert len(stored) + len(keys) < 1_000_000
    assert status.progress["queriesTotal"] == 32


def test_numbers_and_names_that_the_schema_refuses_do_not_come_into_the_status() -> None:
    """One of them would make the API server refuse every later status of the drain."""
    same = "s" * 1024
    query = QueryReport(
        id="q",
        last_batch_id=2**70,
        end_offsets={f"{same}1": "1", f"{same}2": "2"},
        operators=(OperatorReport(name="Aggregate", disposition="flushed", rows_before=-1, rows_after=2**70),),
    )
    report = DrainReport(
        drain_id="u",
        runs=("r",),
        state=DrainState.DRAINED,
        updated_at=NOW,
        queries=(query,),
        executors_expected=2**40,
        driver_pod_uid="x" * 64,
        driver_pod_name="x" * 300,
        timings={"plan": float("inf"), "flush": float("nan"), "freeze": 1e300, "a" * 63 + "1": 1.0, "a" * 63 + "2": 2.0},
    )
    status = DrainStatus(generation=1, now=NOW)
    progress.fill(status, report)
    (shown,) = status.queries
    assert shown["lastBatchId"] == 2**63 - 1
    assert shown["endOffsets"] == [{"source": same, "offset": "2"}]
    assert shown["operators"] == [{"name": "Aggregate", "disposition": "flushed", "rowsAfter": 2**63 - 1}]
    assert status.progress["executorsTotal"] == 2**31 - 1
    assert "stateRowsBefore" not in status.progress
    assert (len(status.driver_pod_uid), len(status.driver_pod_name)) == (63, 253)
    assert [(item["step"], item["milliseconds"]) for item in status.timings] == [("freeze", 2**31 - 1), ("a" * 63, 2000)]


@pytest.mark.parametrize(
    ("state", "run"), [(DrainState.ACKNOWLEDGED, "first"), (DrainState.WITHDRAWN, "first"), (DrainState.FLUSHING, "next")]
)
def test_a_next_version_that_answers_for_a_drain_that_was_given_up_is_not_the_run_that_was_drained(state: DrainState, run: str) -> None:
    """Beyond the point of no return it is the one that goes on with the drain."""
    status = DrainStatus(generation=1, now=NOW, run_id="first", next_run_id="next", driver_pod_name="first-driver", driver_pod_uid="1")
    report = DrainReport(
        drain_id="u", runs=("first", "next"), state=state, updated_at=NOW, driver_pod_name="next-driver", driver_pod_uid="2"
    )
    progress.fill(status, report)
    assert status.run_id == run
    assert (status.driver_pod_name, status.driver_pod_uid) == (f"{run}-driver", "1" if run == "first" else "2")
