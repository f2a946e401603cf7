"""A drain of a real job as a user sees it; all tests look at the same run."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from spark_drain_store.ranges import format_ranges

from demo import batches, dataset
from demo.cluster import Cluster
from demo.job import EXECUTORS, began, reached
from demo.ledger import Ledger
from tests.e2e.flights_run import DRAIN_AFTER, FLIGHTS, Run, drain_and_replace, run_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def run(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with run_of(cluster, tmp_path_factory.mktemp("logs"), idempotent=False, idle=1) as run:
        drain_and_replace(run)
        yield run


def conditions(run: Run, version: str) -> dict[str, str]:
    return {item["type"]: item["status"] for item in run.drains[version]["status"]["conditions"]}


def executors(run: Run, phase: str) -> list[Any]:
    return [pod for pod in run.pods if pod["metadata"]["labels"]["spark-role"] == "executor" and pod["status"]["phase"] == phase]


def ids(pods: list[Any]) -> list[str]:
    return [pod["metadata"]["labels"]["spark-exec-id"] for pod in pods]


def test_the_executors_ran_on_two_nodes(run: Run) -> None:
    assert len(executors(run, "Running")) == EXECUTORS
    assert len({pod["spec"]["nodeName"] for pod in executors(run, "Running")}) == EXECUTORS


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_every_condition_of_a_success_holds(run: Run, version: str) -> None:
    found = conditions(run, version)
    wanted = ("Accepted", "Acknowledged", "SourcesStopped", "Flushed", "ExecutorsDrained", "ScaledDown", "Succeeded", "Finished")
    assert {kind: found.get(kind) for kind in wanted} == dict.fromkeys(wanted, "True")
    assert (found.get("Reconciling", "False"), found.get("Stalled", "False")) == ("False", "False")


def test_every_executor_pod_reported_from_its_own_process(run: Run) -> None:
    report = run.results["v1"]
    assert report["executorsExpected"] == EXECUTORS
    assert report["executorsDrained"] == format_ranges(ids(executors(run, "Running")))
    assert not report["executorExceptions"]


def test_an_executor_that_no_node_takes_is_named_and_not_waited_for(run: Run) -> None:
    (idle,) = ids(executors(run, "Pending"))
    (drained,) = [item for item in run.drains["v1"]["status"]["conditions"] if item["type"] == "ExecutorsDrained"]
    assert drained["message"].endswith(f"never started, so idle: {idle}")


def test_the_report_is_of_the_driver_that_ran(run: Run) -> None:
    (driver,) = [pod for pod in run.pods if pod["metadata"]["labels"]["spark-role"] == "driver"]
    assert run.results["v1"]["driverPodUid"] == driver["metadata"]["uid"]
    assert run.results["v1"]["runs"] == [driver["metadata"]["labels"]["spark-app-selector"]]


def test_the_application_was_suspended_and_its_pods_were_gone_when_the_drain_finished(run: Run) -> None:
    assert run.application["spec"]["suspend"] is True
    assert run.application["status"]["applicationState"]["state"] == "SUSPENDED"
    assert run.left == []


def test_the_notification_was_deleted(run: Run) -> None:
    assert run.requests_left == []


def test_version_2_began_where_version_1_ended(run: Run) -> None:
    ended = run.job.end_offsets("v1")
    assert DRAIN_AFTER <= sum(ended.values()) < FLIGHTS  # mid-stream, or nothing is shown
    assert began(run.feed.seen("v2")) == ended
    assert run.job.end_offsets("v2") == reached(run.feed.seen("v2"))


def test_no_row_was_late(run: Run) -> None:
    seen = [*run.feed.seen("v1"), *run.feed.seen("v2")]
    assert batches.unread(seen, run.job.produced(run.feed)) == []
    assert [batch for batch in seen if batch.dropped] == []


def test_every_flight_was_counted_once(run: Run) -> None:
    ledger = Ledger(dataset.count(FLIGHTS), run.job.outputs())
    assert [output.version for output in ledger.outputs] == ["v1", "v2"]
    assert ledger.line() == f"ledger: records={FLIGHTS} lost=0 doubled=0", ledger.table()


def test_kubectl_tells_the_story(run: Run) -> None:
    header, line = run.listed.splitlines()
    assert "PHASE" in header
    assert re.match(r"flights-v1\s", line)
    assert "Drained" in line
    for word in ("SourcesStopped", "Flushed", "ExecutorsDrained", "ScaledDown", run.results["v1"]["runs"][0]):
        assert word in run.described
    assert {event["type"] for event in run.events} == {"Normal"}
    reasons = {event["reason"] for event in run.events}
    assert {"Acknowledged", "Drained"} <= reasons
