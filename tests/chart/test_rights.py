"""The rights that the chart grants are enough, and are used: operator and agent under their own service accounts."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_drain_store import DrainState
from spark_drain_store.kube_client import ApiError, KubeClient

from tests.operator.conftest import World
from tests.operator.maintenance.conftest import cordon
from tests.operator.maintenance.test_budgets import await_budget, budgets
from tests.operator.maintenance.test_watch import opted_in, said
from tests.operator.process import OperatorProcess, without_proxy
from tests.operator.scripted_agent import ScriptedAgent
from tests.operator.scripted_kubeflow import BackgroundKubeflow, ScriptedApplication
from tests.support import chart
from tests.support.apiserver import (
    DRAINS,
    PLACEMENTS,
    ApiServer,
    drain_body,
    new_namespaces,
    placement_body,
    service_account,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


@pytest.fixture(params=["Cluster", "Namespaces"])
def installed(request: pytest.FixtureRequest, api_server: ApiServer, namespace: str) -> Iterator[str]:
    agents = [{"namespace": namespace, "serviceAccounts": ["default"]}]
    with chart.installed(api_server, namespace, rbac={"scope": request.param}, watchNamespaces=[namespace], agentNamespaces=agents):
        yield namespace


def test_a_drain_with_nothing_but_the_granted_rights(
    api_server: ApiServer, installed: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    whole_cluster = request.node.callspec.params["installed"] == "Cluster"
    operator_config = service_account(api_server, installed, installed, tmp_path)
    environment = without_proxy(api_server.environment()) | {"KUBECONFIG": str(operator_config)}
    operator = OperatorProcess(environment, "" if whole_cluster else installed, tmp_path / "operator.log")
    agent_client = KubeClient.from_kubeconfig(str(service_account(api_server, installed, "default", tmp_path)))
    world = World(api_server, installed, operator, ScriptedApplication(api_server.client, installed))
    operator.start()
    try:
        uid = world.application.create().start()
        agent = ScriptedAgent(agent_client, installed, "spark-one", uid)
        drain_id = world.create_drain()
        agent.await_notification()
        agent.drain(drain_id)
        world.application.obey_suspend()
        world.await_phase("Drained")
        eventually(lambda: ("Normal", "Drained") in world.events(), what="the last Event")
        eventually(lambda: not world.drain()["metadata"].get("finalizers"), what="the finalizer is gone")
    finally:
        operator.kill()
        agent_client.close()
    refused = [line for line in operator.log().splitlines() if "orbidden" in line]
    assert not [line for line in refused if " cannot " in line], "a right was missing; a namespace that is being deleted refuses as well"


@pytest.mark.parametrize("scope", [pytest.param("Cluster", marks=pytest.mark.soak), "Namespaces"])
def test_a_node_is_cleared_with_nothing_but_the_granted_rights(
    api_server: ApiServer, namespace: str, node: str, tmp_path: Path, scope: str
) -> None:
    with chart.installed(api_server, namespace, rbac={"scope": scope}, watchNamespaces=[namespace], nodeWatch={"enabled": True}):
        environment = without_proxy(api_server.environment()) | {
            "KUBECONFIG": str(service_account(api_server, namespace, namespace, tmp_path))
        }
        operator = OperatorProcess(environment, namespace, tmp_path / "operator.log", "--node-watch", "--node-budgets")
        world = World(api_server, namespace, operator, ScriptedApplication(api_server.client, namespace))
        operator.start()
        try:
            agent = opted_in(world, node)
            await_budget(world)
            cordon(world, node)
            notification = agent.await_notification()
            with BackgroundKubeflow(world.application):
                agent.drain(notification.drain_id)
            said(world, "EvacuationSucceeded")
            world.application.annotate(evacuate="false")
            eventually(lambda: budgets(world) == [], what="the budget is removed")
        finally:
            operator.kill()
        assert not [line for line in operator.log().splitlines() if "orbidden" in line and " cannot " in line], "a right was missing"


def test_without_the_watch_of_nodes_the_operator_may_not_read_them(api_server: ApiServer, installed: str, tmp_path: Path) -> None:
    client = KubeClient.from_kubeconfig(str(service_account(api_server, installed, installed, tmp_path)))
    for path in ("/api/v1/nodes", f"/apis/policy/v1/namespaces/{installed}/poddisruptionbudgets"):
        with pytest.raises(ApiError, match="403"):
            client.request("GET", path)
    for path, body in ((DRAINS, drain_body()), (PLACEMENTS, placement_body(executorId="1"))):
        with pytest.raises(ApiError, match="403"):
            client.request("POST", path.format(installed), body=body)
    client.close()


def test_a_namespace_without_rights_does_not_end_the_work_in_the_others(api_server: ApiServer, tmp_path: Path) -> None:
    """Its Role is deleted with it."""
    with (
        new_namespaces(api_server, 2) as (mine, other),
        chart.installed(api_server, mine, rbac={"scope": "Namespaces"}, watchNamespaces=[other, mine]),
    ):
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{other}/rolebindings"
        (binding,) = api_server.client.request("GET", path)["items"]
        name = binding["metadata"]["name"]
        api_server.client.request("DELETE", f"{path}/{name}")
        environment = without_proxy(api_server.environment()) | {"KUBECONFIG": str(service_account(api_server, mine, mine, tmp_path))}
        operator = OperatorProcess(environment, f"{other},{mine}", tmp_path / "operator.log")
        operator.start()
        try:
            World(api_server, mine, operator, ScriptedApplication(api_server.client, mine)).drain_at(DrainState.STOPPING)
            assert f"in namespace '{other}'" in operator.log()
            api_server.client.request("POST", path, body={**binding, "metadata": {"name": name}})
            World(api_server, other, operator, ScriptedApplication(api_server.client, other)).drain_at(DrainState.STOPPING)
            api_server.client.request("DELETE", f"{path}/{name}")
            eventually(lambda: operator.log().count("; the other namespaces are watched") == 2, "it is told again", 40)
            api_server.client.request("POST", path, body={**binding, "metadata": {"name": name}})
            assert operator.running
        finally:
            operator.kill()


def test_where_drains_can_be_read_and_not_watched_any_more_passes_ask_for_them(api_server: ApiServer, tmp_path: Path) -> None:
    with (
        new_namespaces(api_server, 2) as (mine, other),
        chart.installed(api_server, mine, rbac={"scope": "Namespaces"}, watchNamespaces=[other, mine]),
    ):
        environment = without_proxy(api_server.environment()) | {"KUBECONFIG": str(service_account(api_server, mine, mine, tmp_path))}
        operator = OperatorProcess(environment, f"{other},{mine}", tmp_path / "operator.log", "--resync-seconds", "2")
        operator.start()
        try:
            world = World(api_server, other, operator, ScriptedApplication(api_server.client, other))
            agent, drain_id = world.awaiting_approval()
            path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{other}/roles"
            (role,) = api_server.client.request("GET", path)["items"]
            for rule in role["rules"]:
                if "pipelinedrains" in rule["resources"]:
                    rule["verbs"] = [verb for verb in rule["verbs"] if verb not in ("list", "watch")]
            api_server.client.request("PUT", f"{path}/{role['metadata']['name']}", body=role)
            eventually(lambda: "; the other namespaces are watched" in operator.log(), "it is told", 40)
            time.sleep(3)  # its watch has ended
            world.patch_drain(spec={"approved": True})
            eventually(lambda: agent.notifications()[drain_id].approved, "the agent is told", 20)
        finally:
            operator.kill()


def test_the_agent_may_not_touch_the_application(api_server: ApiServer, installed: str, tmp_path: Path) -> None:
    client = KubeClient.from_kubeconfig(str(service_account(api_server, installed, "default", tmp_path)))
    with pytest.raises(ApiError, match="403"):
        client.request("GET", f"/apis/sparkoperator.k8s.io/v1beta2/namespaces/{installed}/sparkapplications")
    with pytest.raises(ApiError, match="403"):
        client.request("DELETE", f"/api/v1/namespaces/{installed}/pods/app-driver")
    client.close()
