"""afterDrain Restart: the application is started again once nothing of it is left."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_store import DrainState
from spark_drain_store.kube_client import ApiError, KubeClient

from tests.operator.conftest import World, condition
from tests.operator.process import OperatorProcess
from tests.operator.scripted_kubeflow import BackgroundKubeflow, ScriptedApplication
from tests.support.apiserver import ApiServer

pytestmark = pytest.mark.apiserver


def test_what_was_drained_is_started_again_once_its_pods_are_gone(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(mode="Stop", afterDrain="Restart")
    assert dict(agent.await_notification().options) == {"afterDrain": "Restart"}
    world.application.hold_pods()
    agent.drain(drain_id)
    world.application.obey_suspend()
    world.await_condition("ScaledDown", "WaitingForPods")
    assert world.application.suspended
    assert drain_id in agent.notifications()
    world.application.hold_pods(held=False)
    body = world.await_phase("Drained")
    assert condition(body, "ScaledDown")["reason"] == "ApplicationRestarted"  # type: ignore[index]
    assert "the application is started again" in body["status"]["message"]
    assert not world.application.suspended
    assert agent.notifications() == {}
    assert world.config_map("drain-result")["data"]["report.json"]


def test_a_forced_stop_starts_it_again_too(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(mode="Stop", afterDrain="Restart", timeoutSeconds=1, onTimeout="ForceStop")
    agent.await_notification()
    agent.report(drain_id, DrainState.STALLED, message="query counts, batch 42: disk full")
    with BackgroundKubeflow(world.application):
        body = world.await_phase("ForceStopped")
    assert condition(body, "ScaledDown")["reason"] == "ApplicationRestarted"  # type: ignore[index]
    assert not world.application.suspended
    assert world.application.body()["metadata"]["generation"] == 3


def test_what_somebody_suspends_again_stays_suspended(own_world: World) -> None:
    """The operator stands still after it has started the application again, and before it has noted that."""
    world = own_world
    world.operator.start()
    agent, drain_id = world.drain_at(DrainState.REPORTING, mode="Stop", afterDrain="Restart")
    world.application.hold_pods()
    agent.drained(drain_id)
    world.application.obey_suspend()
    world.await_condition("ScaledDown", "WaitingForPods")
    world.operator.kill()
    world.patch_status(scaleDown={"restartGeneration": world.application.body()["metadata"]["generation"]})
    world.application.resume()
    world.application.suspend()
    world.application.hold_pods(held=False)
    world.operator.start()
    world.await_phase("Drained")
    assert world.application.suspended


def test_one_that_was_changed_meanwhile_is_left_to_whoever_changed_it(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(mode="Stop", afterDrain="Restart")
    agent.await_notification()
    world.application.hold_pods()
    agent.drain(drain_id)
    world.application.obey_suspend()
    world.await_condition("ScaledDown", "WaitingForPods")
    world.application.change(image="next", suspend=False)
    world.application.hold_pods(held=False)
    body = world.await_phase("Drained")
    assert condition(body, "ScaledDown")["reason"] == "ApplicationResumed"  # type: ignore[index]
    assert not world.application.suspended


def test_an_application_that_does_not_run_is_not_started(world: World) -> None:
    world.application.create(suspend=True)
    world.application.set_state("SUSPENDED")
    world.create_drain(mode="Stop", afterDrain="Restart", ifNotRunning="Succeed")
    world.await_phase("NothingToDrain")
    assert world.application.suspended


def restart_reason(body: dict[str, Any]) -> str:
    return str(condition(body, "ScaledDown")["reason"])  # type: ignore[index]


def test_a_driver_that_has_ended_by_itself_is_not_said_to_be_started_again(own_world: World) -> None:
    """kubeflow's operator starts an application in such a state only when its spec is changed."""
    world = own_world
    world.operator.start()
    agent, drain_id = world.drain_at(DrainState.REPORTING, mode="Stop", afterDrain="Restart")
    world.operator.kill()
    agent.drained(drain_id)
    world.application.end_pods()
    world.application.set_state("FAILED")
    world.operator.start()
    body = world.await_phase("Drained")
    assert restart_reason(body) == "ApplicationNotRestarted"
    assert "the application is not started again: its driver had ended by itself (state FAILED)" in body["status"]["message"]
    assert not world.application.suspended


def test_what_somebody_else_has_suspended_is_not_started(world: World) -> None:
    """In the middle of the drain; the agent gets done in the grace period of its pod."""
    agent, drain_id = world.drain_at(DrainState.REPORTING, mode="Stop", afterDrain="Restart")
    world.application.hold_pods()
    patch = ["sparkapplications.sparkoperator.k8s.io", "app", "--type=merge", "--patch", '{"spec": {"suspend": true}}']
    world.server.run_kubectl("patch", "-n", world.namespace, *patch)
    world.application.set_state("SUSPENDED")
    agent.drained(drain_id)
    world.await_condition("ScaledDown", "WaitingForPods")
    world.application.hold_pods(held=False)
    world.application.end_pods()
    body = world.await_phase("Drained")
    assert restart_reason(body) == "ApplicationNotRestarted"
    assert "somebody else has suspended it" in body["status"]["message"]
    assert world.application.suspended


class Interfered(KubeClient):
    """Somebody does something right after the status says that the application is to be started again."""

    interfere: Callable[[], None] | None = None

    def request(self, method: str, path: str, **details: Any) -> dict[str, Any]:
        answer = super().request(method, path, **details)
        noted = method == "PUT" and (answer.get("status") or {}).get("scaleDown", {}).get("restartGeneration")
        if noted and self.interfere is not None:
            interfere, self.interfere = self.interfere, None
            interfere()
        return answer


@pytest.mark.parametrize(
    ("fate", "reason"),
    [
        (lambda application: application.change(image="next"), "ApplicationNotRestarted"),
        (lambda application: application.delete(), "ApplicationDeleted"),
    ],
    ids=["changed", "deleted"],
)
def test_what_becomes_of_it_before_it_is_started_again_is_told(
    api_server: ApiServer, namespace: str, fate: Callable[[ScriptedApplication], None], reason: str
) -> None:
    client = Interfered.from_kubeconfig(str(api_server.kubeconfig))
    assert isinstance(client, Interfered)
    world, reconciler = suspended(api_server, namespace, client)
    client.interfere = lambda: fate(world.application)
    for _ in range(4):
        with suppress(ApiError):
            reconciler.reconcile(namespace, "drain")
    assert client.interfere is None
    client.close()
    body = world.drain()
    assert body["status"]["phase"] == "Drained"
    assert restart_reason(body) == reason
    assert "started again;" not in body["status"]["message"]


class Kept(KubeClient):
    """A webhook decides which applications run."""

    def request(self, method: str, path: str, **details: Any) -> dict[str, Any]:
        if method == "PATCH" and "/sparkapplications/" in path:
            details["body"]["spec"]["suspend"] = True
        return super().request(method, path, **details)


def test_a_suspension_that_a_webhook_keeps_is_told(api_server: ApiServer, namespace: str) -> None:
    client = Kept.from_kubeconfig(str(api_server.kubeconfig))
    world, reconciler = suspended(api_server, namespace, client)
    for _ in range(4):
        reconciler.reconcile(namespace, "drain")
    assert world.application.suspended
    assert restart_reason(world.drain()) == "ApplicationNotRestarted"
    client.close()


def suspended(api_server: ApiServer, namespace: str, client: KubeClient) -> tuple[World, Reconciler[Any, Any, Any]]:
    """Return a world whose drained application is suspended, and the operator, which has not seen that its pods are gone."""
    application = ScriptedApplication(api_server.client, namespace)
    world = World(api_server, namespace, OperatorProcess({}, "", log=None), application)  # type: ignore[arg-type]
    cluster = Cluster.over(client)
    reconciler = Reconciler(DrainKind(cluster, Settings()), cluster)
    agent = world.run_application()
    drain_id = world.create_drain(mode="Stop", afterDrain="Restart")
    reconciler.reconcile(namespace, "drain")
    agent.drain(drain_id)
    for _ in range(3):
        reconciler.reconcile(namespace, "drain")
    application.obey_suspend()
    return world, reconciler
