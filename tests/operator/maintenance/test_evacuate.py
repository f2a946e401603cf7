"""A node is cleared by the command, on a real API server: a driver restarts elsewhere, and nobody else is touched."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from spark_drain_operator.maintenance.evacuate import Command, main
from spark_drain_operator.maintenance.objects import NODE_LABEL, object_for
from spark_drain_operator.storage import Cluster
from spark_drain_store import DrainState, kube_client
from spark_drain_store.kube_client import ApiError, KubeClient

from tests.operator.conftest import World
from tests.operator.maintenance.conftest import cordon
from tests.operator.process import without_proxy
from tests.operator.scripted_agent import ScriptedAgent
from tests.operator.scripted_kubeflow import BackgroundKubeflow, ScriptedApplication
from tests.support.apiserver import DRAINS, PLACEMENTS, ROOT, drain_body, service_account
from tests.support.policies import freeze
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def evacuate(world: World, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    interruptible = ("env", "--default-signal=INT")  # what runs in the background of a shell ignores it, and so would the command
    command = [*interruptible, sys.executable, "-m", "spark_drain_operator", "evacuate", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=without_proxy(world.server.environment()) | environment, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture
def evacuator(world: World, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of somebody who has the rights of the example and no other."""
    binding = f"evacuators-{world.namespace}"
    kubectl = world.server.run_kubectl
    kubectl("apply", "-f", str(ROOT / "examples/nodes/rights.yaml"))
    kubectl("create", "serviceaccount", "evacuator", "-n", world.namespace)
    account = f"--serviceaccount={world.namespace}:evacuator"
    kubectl("create", "clusterrolebinding", binding, "--clusterrole=node-evacuator", account)
    yield {"KUBECONFIG": str(service_account(world.server, world.namespace, "evacuator", tmp_path))}
    kubectl("delete", "clusterrolebinding", binding)


def is_cordoned(world: World, node: str) -> bool:
    return bool(world.client.request("GET", f"/api/v1/nodes/{node}")["spec"].get("unschedulable"))


def drains(world: World) -> list[str]:
    return [item["metadata"]["name"] for item in world.client.request("GET", DRAINS.format(world.namespace))["items"]]


def test_a_driver_leaves_with_its_executors(world: World, node: str, evacuator: dict[str, str]) -> None:
    """The command is interrupted, and goes on where it was; it has the rights of the example."""
    agent = world.run_application()
    world.application.bind_pods(node)
    world.application.annotate(evacuate="true")
    first = evacuate(world, node, "--within", "10m", **evacuator)
    notification = agent.await_notification()
    first.send_signal(signal.SIGINT)
    said, _ = first.communicate(timeout=30)
    assert first.returncode == 130
    assert f"node {node} is cordoned" in said
    assert "what was begun goes on" in said
    assert is_cordoned(world, node)
    second = evacuate(world, node, **evacuator)
    with BackgroundKubeflow(world.application):
        agent.drain(notification.drain_id)
    said, errors = second.communicate(timeout=60)
    assert second.returncode == 0, (said, errors)
    assert f"node {node} is clear" in said
    (name,) = drains(world)
    assert notification.mode == "Stop"
    eventually(lambda: not world.application.suspended, what="the application is started again")
    world.await_phase("Drained", name)


def test_a_drain_of_the_node_waits_until_the_application_has_left(world: World, node: str) -> None:
    """`kubectl drain` beside the command: its evictions are refused by the budget of the example for as long as the pods are there."""
    agent = world.run_application()
    world.application.bind_pods(node)
    world.application.annotate(evacuate="true")
    budget = (ROOT / "examples/nodes/budget.yaml").read_text().replace("clicks", world.application.name)
    world.server.run_kubectl("apply", "-n", world.namespace, "-f", "-", text=budget)
    drain = ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s"]
    with ThreadPoolExecutor(1) as pool:
        drained = pool.submit(world.server.run_kubectl, *drain)
        command = evacuate(world, node)
        notification = agent.await_notification()
        assert not drained.done()
        assert world.application.alive == {"app-driver", "app-spark-one-exec-1", "app-spark-one-exec-2"}
        with BackgroundKubeflow(world.application):
            agent.drain(notification.drain_id)
        said, _ = command.communicate(timeout=60)
        assert command.returncode == 0, said
        drained.result(timeout=60)
    assert is_cordoned(world, node)


def test_what_has_not_opted_in_is_left_alone(world: World, node: str) -> None:
    world.run_application()
    world.application.bind_pods(node)
    command = evacuate(world, node)
    said, _ = command.communicate(timeout=30)
    assert command.returncode == 1
    assert 'has no annotation sparkdrain.io/evacuate: "true"' in said
    assert f"is not clear: driver {world.namespace}/app-driver, executor " in said
    assert drains(world) == []
    assert world.untouched


def test_a_driver_that_cannot_be_stopped_is_stopped_in_mid_batch_before_the_time_is_over(world: World, node: str) -> None:
    agent = world.run_application()
    world.application.bind_pods(node)
    world.application.annotate(evacuate="true")
    command = evacuate(world, node, "--within", "20s")
    agent.report(agent.await_notification().drain_id, DrainState.STALLED, message="query counts, batch 42: disk full")
    with BackgroundKubeflow(world.application):
        said, _ = command.communicate(timeout=60)
    assert command.returncode == 0, said
    (name,) = drains(world)
    world.await_phase("ForceStopped", name)
    assert not world.application.suspended


def test_a_drain_that_nobody_has_begun_in_time_never_begins(world: World, node: str) -> None:
    """As where the operator is away, or the next run of a lost driver is on another node already."""
    world.run_application()
    world.application.bind_pods(node)
    (pod,) = (pod for pod in Cluster.over(world.client).nodes.spark_pods(node, "uid") if pod.role == "driver")
    spec = object_for(pod, 1, 600)["spec"]
    assert spec["expirationSeconds"] == 600
    assert spec["runId"] == "spark-one"


def test_a_namespace_that_refuses_does_not_hold_up_the_others(world: World, node: str, namespace: str) -> None:
    agent = world.run_application()
    refusing = ScriptedApplication(world.client, namespace)
    refusing.create().start("spark-other")
    for application in (world.application, refusing):
        application.bind_pods(node)
        application.annotate(evacuate="true")
    policy = freeze(namespace, "CREATE", "sparkdrain.io", "v1alpha1")
    world.server.run_kubectl("apply", "-f", "-", text=policy)

    def refuses() -> bool:
        try:
            world.client.request("POST", DRAINS.format(namespace), query={"dryRun": "All"}, body=drain_body())
        except ApiError:
            return True
        return False

    eventually(refuses, what="the policy is in force")
    command = evacuate(world, node, "--within", "8s", "--at-once", "1")
    agent.report(agent.await_notification().drain_id, DrainState.REJECTED, message="\x1b[2Jno\nnode is clear")
    said, _ = command.communicate(timeout=60)
    world.server.run_kubectl("delete", "-f", "-", text=policy)
    assert command.returncode == 1
    assert f"driver {namespace}/app-driver: cannot be moved: 422" in said
    assert "change freeze" in said
    assert "failed: \\x1b[2Jno\\nnode is clear\n" in said, "what an agent says is one line, without escape sequences"


def test_neither_a_pod_without_an_application_nor_drains_of_other_pods_hold_it_up(world: World, node: str) -> None:
    agent = world.run_application()
    world.application.bind_pods(node)
    world.application.annotate(evacuate="true")
    labels = {"spark-role": "driver", "sparkoperator.k8s.io/app-name": ""}
    spec = {"nodeName": node, "containers": [{"name": "any", "image": "none"}]}
    pod = {"metadata": {"name": "nobodys", "labels": labels}, "spec": spec}
    world.client.request("POST", f"/api/v1/namespaces/{world.namespace}/pods", body=pod)
    uid = world.client.request("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
    for number in range(5):
        body = drain_body(f"nobodys-{number}")
        body["spec"]["applicationRef"]["name"] = body["metadata"]["name"]
        body["metadata"]["labels"] = {NODE_LABEL: uid}
        world.client.request("POST", DRAINS.format(world.namespace), body=body)
    command = evacuate(world, node)
    try:
        agent.await_notification()
    finally:
        command.kill()
        said, errors = command.communicate(timeout=30)
    assert "Traceback" not in errors, (said, errors)


@contextmanager
def under_way(world: World, node: str) -> Iterator[tuple[subprocess.Popen[str], ScriptedAgent]]:
    """Have the command wait for a driver."""
    agent = world.run_application()
    world.application.bind_pods(node)
    world.application.annotate(evacuate="true")
    command = evacuate(world, node)
    try:
        agent.await_notification()
        yield command, agent
    finally:
        command.kill()
        command.communicate(timeout=30)


def test_it_ends_when_somebody_uncordons_the_node(world: World, node: str) -> None:
    with under_way(world, node) as (command, _):
        cordon(world, node, on=False)
        said, _ = command.communicate(timeout=30)
    assert command.returncode == 1
    assert f"node {node} is not cordoned any more: nothing else is moved off it" in said
    assert "what was begun goes on" in said
    assert not is_cordoned(world, node)


@pytest.mark.parametrize("another", [False, True], ids=["", "another of its name"])
def test_it_ends_when_the_node_is_deleted(world: World, node: str, another: bool) -> None:
    with under_way(world, node) as (command, _):
        path = f"/api/v1/nodes/{node}"
        world.client.request("DELETE", path)
        if another:
            world.client.request("POST", "/api/v1/nodes", body={"metadata": {"name": node}})
        said, _ = command.communicate(timeout=30)
    assert command.returncode == 1
    assert f"node {node} was deleted" in said
    assert ("there is another node of that name" in said) is another
    assert f"driver {world.namespace}/app-driver" in said


def test_what_comes_to_the_node_meanwhile_is_moved_too(world: World, node: str, namespace: str) -> None:
    """It tolerates that the node is cordoned."""
    later = ScriptedApplication(world.client, namespace, "later")
    with under_way(world, node) as (command, agent):
        later.create().start("spark-later")
        later.bind_pods(node)
        (name,) = drains(world)
        with BackgroundKubeflow(world.application):
            agent.drain(agent.await_notification().drain_id)
            world.await_phase("Drained", name)
        said, _ = command.communicate(timeout=30)
    assert command.returncode == 1
    assert f"is not clear: driver {namespace}/later-driver" in said


def test_an_executor_is_left_to_the_restart_by_a_command_that_clears_another_node(world: World, node: str, other_node: str) -> None:
    """Else it was moved in vain three times, and the command ended with the node not clear."""
    agent = world.run_application(executors=1)
    world.application.bind_pods(node, role="driver")
    world.application.bind_pods(other_node)
    world.application.annotate(evacuate="true")
    first = evacuate(world, node)
    notification = agent.await_notification()
    second = evacuate(world, other_node)
    assert second.stdout is not None
    said = [second.stdout.readline() for _ in range(2)]
    assert f"waits for PipelineDrain {drains(world)[0]} of its application" in said[1]
    with BackgroundKubeflow(world.application):
        agent.drain(notification.drain_id)
    for command in (first, second):
        command.communicate(timeout=60)
        assert command.returncode == 0
    assert not world.client.request("GET", PLACEMENTS.format(world.namespace))["items"]


def test_what_nobody_has_answered_is_named(own_world: World, node: str) -> None:
    own_world.run_application()
    own_world.application.bind_pods(node)
    own_world.application.annotate(evacuate="true")
    command = evacuate(own_world, node, "--within", "3s")
    said, _ = command.communicate(timeout=30)
    assert command.returncode == 1
    (name,) = drains(own_world)
    assert f"PipelineDrain {name}: has not ended: " in said


class Away(KubeClient):
    """An API server that is away for a while."""

    requests_left = 2

    def request(self, method: str, path: str, **details: Any) -> dict[str, Any]:
        self.requests_left -= 1
        if self.requests_left >= 0:
            return kube_client._answer(503, b'{"kind": "Status", "message": "the server is shutting down"}')
        return super().request(method, path, **details)


def test_an_api_server_that_is_away_for_a_while_is_waited_for(world: World, node: str) -> None:
    client = Away.from_kubeconfig(str(world.server.kubeconfig))
    said: list[str] = []
    uid = world.client.request("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
    cordon(world, node)
    assert Command(Cluster.over(client), node, uid, 1, said.append).run(60)
    client.close()
    assert [line.partition("; ")[2] for line in said] == ["it is asked again", "it is asked again", ""]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such-node"], "there is no node 'no-such-node'"),
        (["."], "'.' is not the name of a node: see kubectl get nodes"),
        (["n/../m"], "'n/../m' is not the name of a node"),
        (["n", "--within", "soon"], "'soon' is not a duration such as 90s, 30m or 2h"),
        (["n", "--within", "30"], "'30' is not a duration such as 90s, 30m or 2h"),
        (["n", "--at-once", "0"], "--at-once must be at least 1, not 0"),
    ],
)
def test_wrong_arguments_are_named(world: World, arguments: list[str], words: str) -> None:
    command = evacuate(world, *arguments)
    _, errors = command.communicate(timeout=30)
    assert command.returncode == 2
    assert words in errors


def test_without_rights_the_manifest_that_has_them_is_named(world: World, node: str, tmp_path: Path) -> None:
    world.server.run_kubectl("create", "serviceaccount", "nobody", "-n", world.namespace)
    command = evacuate(world, node, KUBECONFIG=str(service_account(world.server, world.namespace, "nobody", tmp_path)))
    _, errors = command.communicate(timeout=30)
    assert command.returncode == 1
    assert "403 Forbidden" in errors
    assert "the rights that this needs are in examples/nodes/rights.yaml" in errors
    assert "again" not in errors


def test_without_credentials_there_is_nothing_to_go_on_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent() -> KubeClient:
        return KubeClient.from_kubeconfig(str(tmp_path / "none"))

    monkeypatch.setattr(KubeClient, "from_environment", absent)
    assert main(["node1"]) == 1
    said = capsys.readouterr().err
    assert f"no Kubernetes credentials in {tmp_path / 'none'}" in said
    assert "run in a pod, or set KUBECONFIG" in said
    assert "again" not in said
