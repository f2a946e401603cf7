"""The driver's pod is deleted while it flushes: kubeflow's operator starts another one, and that run finishes the drain.

By force, without a grace period: the pod is gone from the API while its containers still end, and its executors, which nobody deletes, end
by themselves, so that the next driver may meet what is left of both. How a kill -9 of the process ends is `make demo KILL=1`.
"""

from collections.abc import Iterator

import pytest

from demo import dataset
from demo.cluster import Cluster
from demo.job import EXECUTORS
from demo.killing import Killer
from demo.ledger import Ledger
from tests.e2e.flights_run import FLIGHTS, Run, drain_and_kill, run_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def killed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, Killer]]:
    with run_of(cluster, tmp_path_factory.mktemp("logs"), idempotent=True) as run:
        yield run, drain_and_kill(run)


def test_another_run_of_the_driver_finished_the_drain(killed: tuple[Run, Killer]) -> None:
    run, killer = killed
    (driver,) = [pod for pod in run.pods if pod["metadata"]["labels"]["spark-role"] == "driver"]
    report = run.results["v1"]
    killer.check(report)
    assert report["runs"][0] == killer.run == driver["metadata"]["labels"]["spark-app-selector"]
    assert len(report["runs"]) == 2
    assert report["driverPodUid"] != driver["metadata"]["uid"]


def test_the_executors_of_that_run_reported(killed: tuple[Run, Killer]) -> None:
    run, _ = killed
    assert run.results["v1"]["executorsExpected"] == EXECUTORS
    assert run.results["v1"]["executorsDrained"] == f"1-{EXECUTORS}"


def test_exactly_the_records_before_the_end_offsets_were_counted(killed: tuple[Run, Killer]) -> None:
    run, _ = killed
    ends = run.job.end_offsets("v1")
    assert 0 < sum(ends.values()) < FLIGHTS
    ledger = Ledger(dataset.count_before(ends), run.job.outputs())
    assert ledger.line() == f"ledger: records={sum(ends.values())} lost=0 doubled=0", ledger.table()


def test_the_application_was_suspended_and_nothing_was_left(killed: tuple[Run, Killer]) -> None:
    run, _ = killed
    assert run.application["status"]["applicationState"]["state"] == "SUSPENDED"
    assert (run.left, run.requests_left) == ([], [])
