"""One world per test: a namespace, an application, an agent, an operator process."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from spark_drain_store import DrainState, reasons
from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient

from devcluster.api import RunningControlPlane, control_plane
from tests.operator.process import OperatorProcess, without_proxy
from tests.operator.scripted_agent import ScriptedAgent
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import DRAINS, ApiServer, drain_body, new_namespaces, running, served
from tests.support.waiting import eventually


@dataclass
class World:
    server: ApiServer
    namespace: str
    operator: OperatorProcess
    application: ScriptedApplication

    @property
    def client(self) -> KubeClient:
        return self.server.client

    @property
    def untouched(self) -> bool:
        """Whether nobody has changed the application."""
        return not self.application.suspended and self.application.body()["metadata"]["generation"] == 1

    def run_application(self, run_id: str = "spark-one", *, executors: int = 2) -> ScriptedAgent:
        """Create and start the application; returns the agent in its driver."""
        uid = self.application.create().start(run_id, executors=executors)
        return self.agent(run_id, uid)

    def agent(self, run_id: str, pod_uid: str) -> ScriptedAgent:
        return ScriptedAgent(self.client, self.namespace, run_id, pod_uid, self.application.name)

    def create_drain(self, name: str = "drain", **spec: Any) -> str:
        """Create a PipelineDrain; returns its uid."""
        body = self.client.request("POST", DRAINS.format(self.namespace), body=drain_body(name, **spec))
        return str(body["metadata"]["uid"])

    def drain_at(self, state: DrainState, phase: str = "", **spec: Any) -> tuple[ScriptedAgent, str]:
        """Bring a drain to a state, whose phase mostly has its name; returns the agent and the drain's id."""
        agent = self.run_application()
        drain_id = self.create_drain(**spec)
        agent.await_notification()
        agent.report(drain_id, state, reason=reasons.AWAITING_APPROVAL if phase == "AwaitingApproval" else "")
        self.await_phase(phase or state.value)
        return agent, drain_id

    def drained(self, **spec: Any) -> tuple[ScriptedAgent, str]:
        """Bring a drain to where its agent is done; returns the agent and the drain's id."""
        agent = self.run_application()
        drain_id = self.create_drain(**spec)
        agent.await_notification()
        agent.drain(drain_id)
        return agent, drain_id

    def awaiting_approval(self) -> tuple[ScriptedAgent, str]:
        """Bring a drain to where somebody has to approve it; returns the agent and the drain's id."""
        return self.drain_at(DrainState.ACKNOWLEDGED, "AwaitingApproval", execution="AfterApproval")

    def drain_just_after_a_next_version(self, **spec: Any) -> dict[str, Any]:
        """Drain an application whose driver has not been ended yet for its next version; returns the drain as it has failed."""
        agent = self.run_application()
        time.sleep(1.1)  # times of the API server are whole seconds
        self.application.change(image="next")
        drain_id = self.create_drain(**spec)
        agent.await_notification()
        agent.report(drain_id, DrainState.ACKNOWLEDGED)
        self.await_phase("Acknowledged")
        agent.restarted("spark-two", self.application.restart("spark-two"))
        agent.await_withdrawn()
        agent.report(drain_id, DrainState.WITHDRAWN)
        return self.await_phase("Failed")

    def drain(self, name: str = "drain") -> dict[str, Any]:
        return self.client.request("GET", f"{DRAINS.format(self.namespace)}/{name}")

    def patch_drain(self, name: str = "drain", **body: Any) -> None:
        self.client.request("PATCH", f"{DRAINS.format(self.namespace)}/{name}", body=body, content_type=MERGE_PATCH)

    def patch_status(self, name: str = "drain", **fields: Any) -> None:
        path = f"{DRAINS.format(self.namespace)}/{name}/status"
        self.client.request("PATCH", path, body={"status": fields}, content_type=MERGE_PATCH)

    def delete_drain(self, name: str = "drain") -> None:
        self.client.request("DELETE", f"{DRAINS.format(self.namespace)}/{name}")

    def lose_drain(self, name: str = "drain") -> None:
        """Delete it whatever holds it."""
        self.patch_drain(name, metadata={"finalizers": None})
        self.delete_drain(name)

    @property
    def requests(self) -> list[str]:
        """The requests of the operator, watches aside, as its own log tells them."""
        lines = self.operator.log().splitlines()
        return [line for line in lines if "spark_drain_store.kube_client: " in line and "watch=true" not in line]

    def drain_is_gone(self, name: str = "drain") -> bool:
        try:
            self.drain(name)
        except ApiError as error:
            return error.status == 404
        return False

    def await_phase(self, phase: str, name: str = "drain", *, seconds: float = 60.0) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            body = self.drain(name)
            return body if (body.get("status") or {}).get("phase") == phase else None

        try:
            return eventually(look, seconds=seconds, what=f"phase {phase}")
        except AssertionError as error:
            raise AssertionError(f"{error}\nstatus: {self.drain(name).get('status')}\noperator: {self.operator.log()[-4000:]}") from error

    def await_condition(self, type_: str, reason: str, name: str = "drain", *, seconds: float = 60.0) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found = condition(self.drain(name), type_)
            return found if found and found["reason"] == reason else None

        try:
            return eventually(look, seconds=seconds, what=f"condition {type_} has reason {reason}")
        except AssertionError as error:
            raise AssertionError(f"{error}\nstatus: {self.drain(name).get('status')}\noperator: {self.operator.log()[-4000:]}") from error

    def events(self, name: str = "drain") -> list[tuple[str, str]]:
        """Return type and reason of the Events of a drain, in order."""
        query = {"fieldSelector": f"involvedObject.name={name},involvedObject.kind=PipelineDrain"}
        items = self.client.request("GET", f"/api/v1/namespaces/{self.namespace}/events", query=query)["items"]
        return [(item["type"], item["reason"]) for item in sorted(items, key=lambda item: str(item["eventTime"]))]

    def delete_config_maps(self) -> None:
        """Do what the garbage collector does when application and drain are gone."""
        query = {"labelSelector": "app.kubernetes.io/managed-by=spark-drain"}
        self.client.request("DELETE", f"/api/v1/namespaces/{self.namespace}/configmaps", query=query)

    def complete_without_result(self, **spec: Any) -> tuple[ScriptedAgent, str]:
        """Bring a drain to where somebody else's ConfigMap has the name of its result; returns the agent and the drain's id."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "drain-result"}, "data": {"mine": "yes"}}
        self.client.request("POST", f"/api/v1/namespaces/{self.namespace}/configmaps", body=body)
        agent, drain_id = self.drained(**spec)
        assert self.await_condition("Stalled", "ResultNameTaken")["status"] == "True"
        return agent, drain_id

    def free_result_name(self) -> None:
        """Remove that ConfigMap."""
        self.client.request("DELETE", f"/api/v1/namespaces/{self.namespace}/configmaps/drain-result")

    def config_map(self, name: str) -> dict[str, Any]:
        return self.client.request("GET", f"/api/v1/namespaces/{self.namespace}/configmaps/{name}")


def condition(body: dict[str, Any], type_: str) -> dict[str, Any] | None:
    conditions = (body.get("status") or {}).get("conditions") or []
    return next((item for item in conditions if item["type"] == type_), None)


@dataclass
class Shared:
    """An operator that serves many tests, and the namespaces that it watches."""

    operator: OperatorProcess
    free: list[str]


@contextmanager
def one_operator(api_server: ApiServer, folder: Path, namespaces: int) -> Iterator[Shared]:
    with new_namespaces(api_server, namespaces) as names:
        operator = OperatorProcess(without_proxy(api_server.environment()), ",".join(names), folder / "operator.log", "--allow-delete")
        operator.hurry().start()
        yield Shared(operator, names)
        assert operator.stop() == 0, operator.log()[-4000:]


@pytest.fixture(scope="package")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Run one that ends with these tests, and not with whatever their worker goes on with."""
    with running(tmp_path_factory.mktemp("kubectl")) as server:
        yield server


@pytest.fixture(scope="package")
def shared(request: pytest.FixtureRequest, api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    here = [item for item in request.session.items if item.path.is_relative_to(Path(__file__).parent)]
    worlds = sum("world" in getattr(item, "fixturenames", ()) for item in here)  # each has a namespace of its own
    with one_operator(api_server, tmp_path_factory.mktemp("operator"), worlds) as shared:
        yield shared


@pytest.fixture
def plane() -> Iterator[RunningControlPlane]:
    """Return a control plane that no other test uses."""
    with control_plane() as running:
        yield running


@pytest.fixture
def server(plane: RunningControlPlane, tmp_path: Path) -> Iterator[ApiServer]:
    """Return its API server."""
    with served(plane.kubeconfig, str(plane.kubectl), tmp_path / "kubectl") as server:
        yield server


@pytest.fixture
def world(api_server: ApiServer, shared: Shared) -> Iterator[World]:
    """Return a world whose operator other tests use too, because starting one costs seconds."""
    namespace = shared.free.pop()
    yield World(api_server, namespace, shared.operator, ScriptedApplication(api_server.client, namespace))
    assert shared.operator.running, shared.operator.log()[-4000:]
    assert "defect in the operator" not in shared.operator.log(), shared.operator.log()[-4000:]


@pytest.fixture
def own_world(api_server: ApiServer, namespace: str, tmp_path: Path) -> Iterator[World]:
    """Return a world with an operator of its own, not started yet: it may be killed."""
    options = ("--allow-delete", "--log-level", "DEBUG")
    operator = OperatorProcess(without_proxy(api_server.environment()), namespace, tmp_path / "operator.log", *options)
    yield World(api_server, namespace, operator, ScriptedApplication(api_server.client, namespace))
    if operator.running:
        operator.kill()
    assert "defect in the operator" not in operator.log(), operator.log()[-4000:]
