"""The checkpoint is in S3: the driver's pod is deleted while it flushes, its next run finishes the drain, and another version reads on."""

from collections.abc import Iterator

import pytest

from demo import batches, dataset
from demo.cluster import Cluster
from demo.job import began
from demo.killing import Killer
from demo.ledger import Ledger
from demo.stores import S3
from tests.e2e.flights_run import FLIGHTS, Run, drain_and_kill, replace, run_of

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def killed(cluster_with_s3: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, Killer]]:
    with run_of(cluster_with_s3, tmp_path_factory.mktemp("logs"), idempotent=True, store=S3) as run:
        killer = drain_and_kill(run)
        replace(run)
        yield run, killer


def test_another_run_of_the_driver_finished_the_drain(killed: tuple[Run, Killer]) -> None:
    run, killer = killed
    killer.check(run.results["v1"])


def test_version_2_began_where_version_1_ended(killed: tuple[Run, Killer]) -> None:
    run, _ = killed
    assert began(run.feed.seen("v2")) == run.job.end_offsets("v1")


def test_every_flight_was_counted_once(killed: tuple[Run, Killer]) -> None:
    run, _ = killed
    seen = [*run.feed.seen("v1"), *run.feed.seen("v2")]
    assert [batch for batch in seen if batch.dropped] == []
    assert batches.unread(seen, run.job.produced(run.feed)) == []
    ledger = Ledger(dataset.count(FLIGHTS), run.job.outputs())
    assert ledger.line() == f"ledger: records={FLIGHTS} lost=0 doubled=0", ledger.table()
