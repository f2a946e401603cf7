"""A commit replaces a running pipeline by an incompatible version on the same checkpoint: one sync by Argo CD's engine."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo import batches, dataset, manifests
from demo import cluster as where
from demo.cluster import Cluster
from demo.job import began
from demo.ledger import Ledger
from tests.e2e.flights_run import DRAIN_AFTER, FLIGHTS, REST, Run, drain, read_all, run_of
from tests.support.gitops import ArgoApplication, Outcome, Repository

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

HOOK = {"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation"}
SYNC_SECONDS = 300
# Records per batch of version 1: small, so that it still reads when the sync, which looks at the whole namespace first, comes to the drain.
SMALL = 50


@dataclass
class Upgrade:
    run: Run
    outcome: Outcome
    left: list[str]


def hook() -> dict[str, object]:
    """Return the drain of version 1 as a hook of the sync."""
    (body,) = manifests.load("drain-v1")
    body["metadata"]["annotations"] = HOOK
    body["spec"]["ifNotRunning"] = "Succeed"
    return body


@pytest.fixture(scope="module")
def upgrade(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgrade]:
    with run_of(cluster, tmp_path_factory.mktemp("logs"), idempotent=False, max_offsets=SMALL, drain_after=DRAIN_AFTER // 2) as run:
        repository = Repository(tmp_path_factory.mktemp("git") / "repository")
        repository.commit("version 1", run.job.manifest("v1"), hook())
        revision = repository.commit("version 2", run.job.manifest("v2", max_offsets=REST), hook())
        environment = cluster.environment
        argo = ArgoApplication(repository, Path(environment["KUBECONFIG"]), where.TEST_NAMESPACE, environment)
        outcome = argo.start(f"--revision={revision}", seconds=SYNC_SECONDS).outcome()
        assert outcome.phase == "Succeeded", outcome
        old = {pod["metadata"]["uid"] for pod in run.pods}
        pods = run.job.kubectl.get("pods", "--selector=spark-role")["items"]
        left = [pod["metadata"]["name"] for pod in pods if pod["metadata"]["uid"] in old]
        run.drains["v1"] = run.job.kubectl.get("pdr", "flights-v1")
        read_all(run)
        drain(run, "v2")
        yield Upgrade(run, outcome, left)


def test_the_sync_drained_the_old_version_and_then_applied_the_new_one(upgrade: Upgrade) -> None:
    assert (upgrade.outcome.of("PipelineDrain")["hook"], upgrade.outcome.of("PipelineDrain")["status"]) == ("PreSync", "Succeeded")
    assert upgrade.outcome.of("SparkApplication")["status"] == "Synced"
    assert upgrade.run.drains["v1"]["status"]["phase"] == "Drained"
    assert upgrade.left == [], "pods of the old version"


def test_the_new_version_began_where_the_old_one_ended(upgrade: Upgrade) -> None:
    run = upgrade.run
    ended = run.job.end_offsets("v1")
    assert 0 < sum(ended.values()) < FLIGHTS
    assert began(run.feed.seen("v2")) == ended
    assert batches.unread([*run.feed.seen("v1"), *run.feed.seen("v2")], run.job.produced(run.feed)) == []


def test_every_flight_was_counted_once(upgrade: Upgrade) -> None:
    ledger = Ledger(dataset.count(FLIGHTS), upgrade.run.job.outputs())
    assert [output.version for output in ledger.outputs] == ["v1", "v2"]
    assert ledger.line() == f"ledger: records={FLIGHTS} lost=0 doubled=0", ledger.table()
