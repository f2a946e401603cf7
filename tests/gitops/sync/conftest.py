"""One world per test: a repository, a namespace that it is synchronized to, the scripted kubeflow and agent, a real operator."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from spark_drain_store import DrainState

from tests.gitops.sync import recipe
from tests.operator.conftest import Shared, World, one_operator
from tests.operator.process import without_proxy
from tests.operator.scripted_agent import ScriptedAgent
from tests.operator.scripted_kubeflow import BackgroundKubeflow, ScriptedApplication
from tests.support.apiserver import DRAINS, ApiServer
from tests.support.gitops import ArgoApplication, Operation, Outcome, Repository

POOL = 16  # namespaces: one per test


@pytest.fixture(scope="module")
def shared(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with one_operator(api_server, tmp_path_factory.mktemp("operator"), POOL) as shared:
        yield shared


@dataclass
class GitOps:
    world: World
    repository: Repository
    argo: ArgoApplication

    @property
    def application(self) -> ScriptedApplication:
        return self.world.application

    @property
    def spec(self) -> dict[str, Any]:
        """The application's spec in the cluster."""
        spec: dict[str, Any] = self.application.body()["spec"]
        return spec

    @property
    def pods(self) -> list[str]:
        items = self.world.client.request("GET", f"/api/v1/namespaces/{self.world.namespace}/pods")["items"]
        return sorted(item["metadata"]["name"] for item in items)

    @property
    def drains(self) -> list[str]:
        """Uids of the drains that there are."""
        items = self.world.client.request("GET", DRAINS.format(self.world.namespace))["items"]
        return [item["metadata"]["uid"] for item in items]

    def first_version(self, *objects: dict[str, Any]) -> ScriptedAgent:
        """Commit and synchronize a first version and start it; returns the agent in its driver."""
        self.repository.commit("first version", *objects)
        outcome = self.argo.sync()
        assert outcome.phase == "Succeeded", outcome
        return self.world.agent("spark-one", self.application.start())

    def edit_by_hand(self, **spec: Any) -> None:
        patch = json.dumps({"spec": spec})
        self.world.server.run_kubectl(
            "-n", self.world.namespace, "patch", "sparkapplication", recipe.NAME, "--type=merge", "--patch", patch
        )

    def drained(self, operation: Operation, agent: ScriptedAgent) -> Outcome:
        """Play the agent and kubeflow's operator through a drain that succeeds."""
        drain_id = agent.await_notification().drain_id
        with BackgroundKubeflow(self.application):
            agent.drain(drain_id)
        return operation.outcome()

    def ended(self, operation: Operation, agent: ScriptedAgent, state: DrainState, reason: str, message: str) -> Outcome:
        """Let the agent end a drain before anything was touched."""
        drain_id = agent.await_notification().drain_id
        agent.report(drain_id, state, reason=reason, message=message)
        return operation.outcome()


@pytest.fixture
def gitops(api_server: ApiServer, shared: Shared, tmp_path: Path) -> Iterator[GitOps]:
    namespace = shared.free.pop()
    application = ScriptedApplication(api_server.client, namespace, recipe.NAME)
    repository = Repository(tmp_path / "repository")
    environment = without_proxy(api_server.environment())
    yield GitOps(
        World(api_server, namespace, shared.operator, application),
        repository,
        ArgoApplication(repository, api_server.kubeconfig, namespace, environment),
    )
    assert "defect in the operator" not in shared.operator.log(), shared.operator.log()[-4000:]
