"""One drain on kind, on a machine whose end-to-end tests use another cluster."""

from collections.abc import Iterator

import pytest

from demo import cluster as where
from demo import dataset
from demo.job import EXECUTORS
from demo.ledger import Ledger
from devcluster import docker
from devcluster.images.recipes import SPARK_OPERATOR
from devcluster.kindcluster import KindCluster
from devcluster.paths import cluster_dir
from tests.e2e.flights_run import FLIGHTS, Run, drain_once, run_of
from tests.kind.conftest import NAME, Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def drained(kind_alone: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    if docker.image_id(SPARK_OPERATOR):  # by whoever has nodes that cannot fetch it
        KindCluster(cluster_dir(NAME)).load(SPARK_OPERATOR)
    cluster = where.own(NAME, "kind")
    cluster.install_operator()
    with run_of(cluster, tmp_path_factory.mktemp("logs"), idempotent=False) as run:
        drain_once(run)
        yield run


def test_every_executor_reported(drained: Run) -> None:
    assert drained.results["v1"]["executorsExpected"] == EXECUTORS
    assert drained.results["v1"]["executorsDrained"] == f"1-{EXECUTORS}"


def test_exactly_the_records_before_the_end_offsets_were_counted(drained: Run) -> None:
    ends = drained.job.end_offsets("v1")
    assert 0 < sum(ends.values()) < FLIGHTS
    ledger = Ledger(dataset.count_before(ends), drained.job.outputs())
    assert ledger.line() == f"ledger: records={sum(ends.values())} lost=0 doubled=0", ledger.table()


def test_the_application_was_suspended_and_nothing_was_left(drained: Run) -> None:
    assert drained.application["status"]["applicationState"]["state"] == "SUSPENDED"
    assert (drained.left, drained.requests_left) == ([], [])
