"""Nodes that are marked are cleared by the operator itself, on a real API server."""

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from spark_drain_operator.clock import now
from spark_drain_operator.maintenance.clearing import time_given
from spark_drain_operator.maintenance.objects import NODE_LABEL, SINCE
from spark_drain_operator.storage import Cluster
from spark_drain_store import DrainState
from spark_drain_store.kube_client import MERGE_PATCH
from spark_drain_store.placement_messages import PlacementStatus

from tests.operator.conftest import World
from tests.operator.kinds.placement.conftest import PlacementAgent, placement_agent
from tests.operator.maintenance.conftest import TAINT, cordon, taint
from tests.operator.maintenance.test_evacuate import drains
from tests.operator.scripted_agent import ScriptedAgent
from tests.operator.scripted_kubeflow import BackgroundKubeflow
from tests.support.apiserver import DRAINS, PLACEMENTS, drain_body, listed
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def asked(world: World, path: str) -> list[dict[str, Any]]:
    """Return a list, also of an API server that has just begun: it refuses for a second or so."""
    found: list[dict[str, Any]] = eventually(partial(listed, world.client, path), what="the API server answers")["items"]
    return found


def placements(world: World) -> list[dict[str, Any]]:
    return asked(world, PLACEMENTS.format(world.namespace))


def story(world: World) -> list[tuple[str, str]]:
    """Return reasons and messages of the Events of the application, in order."""
    query = {"fieldSelector": f"involvedObject.name={world.application.name},involvedObject.kind=SparkApplication"}
    items = world.client.request("GET", f"/api/v1/namespaces/{world.namespace}/events", query=query)["items"]
    return [(item["reason"], item["message"]) for item in sorted(items, key=lambda item: str(item["eventTime"]))]


def said(world: World, reason: str) -> str:
    """Wait for an Event of the application; returns its message."""
    return eventually(lambda: next((message for each, message in story(world) if each == reason), ""), what=f"an Event {reason}")


def await_looks(world: World, count: int = 2) -> None:
    """Wait until the operator has looked at what is under way so often from now on."""

    def looks() -> int:
        return sum("executorplacements?labelSelector" in line for line in world.operator.log().splitlines())

    before = looks()
    eventually(lambda: looks() >= before + count, what="the operator looks again")


def opted_in(world: World, node: str, *, role: str | None = None, executors: int = 2) -> ScriptedAgent:
    """Run an application that may be moved, with pods on a node; returns the agent."""
    agent = world.run_application(executors=executors)
    world.application.annotate(evacuate="true")
    world.application.bind_pods(node, role=role)
    return agent


def asked_placement(world: World) -> tuple[dict[str, Any], PlacementAgent]:
    """Wait until the agent is asked for the first placement; returns both."""
    made = eventually(lambda: next(iter(placements(world)), None), what="the placement")
    agent = placement_agent(world)
    eventually(lambda: made["metadata"]["uid"] in agent.placements().requests, what="the agent is asked")
    return made, agent


def move_executor(world: World, name: str, executor_id: str) -> None:
    """Do what agent and Spark do for a placement."""
    uid = next(item["metadata"]["uid"] for item in placements(world) if item["metadata"]["name"] == name)
    agent = placement_agent(world)
    eventually(lambda: uid in agent.placements().requests, what="the agent is asked")
    agent.respond(uid, PlacementStatus.SUCCEEDED, f"executor {executor_id} was replaced")
    world.application.end_pod(f"{world.application.name}-spark-one-exec-{executor_id}")


def test_a_driver_and_its_executors_leave_a_cordoned_node(watching: World, node: str) -> None:
    agent = opted_in(watching, node)
    watching.operator.start()
    cordon(watching, node)
    notification = agent.await_notification()
    assert notification.mode == "Stop"
    with BackgroundKubeflow(watching.application):
        agent.drain(notification.drain_id)
    eventually(lambda: not watching.application.suspended, what="the application is started again")
    (name,) = drains(watching)
    watching.await_phase("Drained", name)
    begun = said(watching, "EvacuationStarted")
    assert begun.startswith(f"node {node} is to be clear by ")
    assert f"(cordoned): driver {watching.namespace}/app-driver: its application is restarted, PipelineDrain {name}" in begun
    said(watching, "EvacuationSucceeded")
    assert [reason for reason, _ in story(watching)] == ["EvacuationStarted", "EvacuationSucceeded"]
    assert placements(watching) == []


def test_executors_leave_a_tainted_node(watching: World, node: str) -> None:
    """Also where the operator was not there when it was tainted."""
    opted_in(watching, node, role="executor")
    taint(watching, node, TAINT)
    watching.operator.start()
    made = eventually(lambda: found if len(found := placements(watching)) == 2 else None, what="a placement for each executor")
    assert {item["spec"]["podName"] for item in made} == {"app-spark-one-exec-1", "app-spark-one-exec-2"}
    for item in made:
        assert item["spec"]["destination"] == {"type": "AnyOther"}
        assert item["spec"]["expirationSeconds"] <= 300
        assert item["spec"]["decommissionAfterSeconds"] > 0
        move_executor(watching, item["metadata"]["name"], item["spec"]["podName"][-1])
    eventually(lambda: sum(reason == "EvacuationSucceeded" for reason, _ in story(watching)) == 2, what="it is told")
    assert f"({TAINT}): executor {watching.namespace}/app-spark-one-exec-" in said(watching, "EvacuationStarted")
    assert drains(watching) == []


def test_what_has_not_opted_in_is_left_alone(watching: World, node: str) -> None:
    watching.run_application()
    watching.application.bind_pods(node)
    watching.operator.start()
    cordon(watching, node)
    assert "left alone, SparkApplication 'app' has no annotation sparkdrain.io/evacuate: \"true\"" in said(watching, "NotEvacuated")
    assert drains(watching) == []
    assert placements(watching) == []
    assert watching.untouched
    assert len(story(watching)) == 1, "it is said once, not for each pod"


def test_an_operator_that_was_killed_goes_on(watching: World, node: str) -> None:
    opted_in(watching, node, role="executor", executors=1)
    watching.operator.start()
    taint(watching, node, TAINT)
    first = eventually(lambda: next(iter(placements(watching)), None), what="the placement")
    said(watching, "EvacuationStarted")  # it is told after the placement was created
    watching.operator.kill()
    time.sleep(2)  # the time of the node goes on while nobody looks
    watching.operator.start()
    await_looks(watching)
    watching.application.add_executor("2")
    watching.application.bind_pods(node, role="executor")
    eventually(lambda: len(placements(watching)) == 2, what="the one of the new executor")
    both = {item["spec"]["podName"]: item["metadata"] for item in placements(watching)}
    assert both.keys() == {"app-spark-one-exec-1", "app-spark-one-exec-2"}, "nothing is asked for twice"
    assert len({metadata["annotations"][SINCE] for metadata in both.values()}) == 1, "a node has its time once"
    move_executor(watching, first["metadata"]["name"], "1")
    assert "done: executor 1 was replaced" in said(watching, "EvacuationSucceeded")
    assert sum(reason == "EvacuationStarted" for reason, _ in story(watching)) == 2


def test_a_pod_that_left_by_itself_is_no_failure(watching: World, node: str) -> None:
    """As one that was evicted before it had started, for which Kubernetes asks no budget."""
    opted_in(watching, node, role="executor", executors=1)
    cordon(watching, node)
    watching.operator.start()
    made, agent = asked_placement(watching)
    watching.application.end_pods(role="executor")
    agent.respond(made["metadata"]["uid"], PlacementStatus.FAILED, "there is no executor 1")
    assert "the pod had left by itself: there is no executor 1" in said(watching, "EvacuationSucceeded")
    assert "EvacuationFailed" not in {reason for reason, _ in story(watching)}


def test_an_executor_that_was_decommissioned_before_a_new_one_was_there_has_not_left_by_itself(watching: World, node: str) -> None:
    """Whichever the operator sees first, the answer or that the pod has gone."""
    opted_in(watching, node, role="executor", executors=1)
    cordon(watching, node)
    watching.operator.start()
    made, agent = asked_placement(watching)
    watching.application.end_pods(role="executor")
    await_looks(watching)
    agent.respond(made["metadata"]["uid"], PlacementStatus.FAILED, "executor 1 was decommissioned", decommissioned=True)
    assert "failed: executor 1 was decommissioned" in said(watching, "EvacuationFailed")


def test_an_application_that_is_drained_is_left_to_that(watching: World, node: str) -> None:
    """Else what is moved in vain three times could be evicted in the middle of the drain."""
    opted_in(watching, node, role="executor", executors=1)
    watching.operator.start()
    watching.create_drain("mine")
    watching.await_condition("Acknowledged", "WaitingForAgent", "mine")
    cordon(watching, node)
    assert "app-spark-one-exec-1: waits for PipelineDrain mine of its application" in said(watching, "EvacuationWaits")
    await_looks(watching, 3)
    assert not placements(watching)
    watching.client.request("DELETE", f"{DRAINS.format(watching.namespace)}/mine")
    eventually(lambda: placements(watching), what="the placement")


def test_a_driver_is_left_to_a_drain_that_waits_for_approval(watching: World, node: str) -> None:
    """Its restart would be rejected three times within a minute, and then it could be evicted."""
    agent = opted_in(watching, node)
    watching.operator.start()
    drain_id = watching.create_drain("mine", execution="AfterApproval")
    agent.await_notification()
    agent.report(drain_id, DrainState.ACKNOWLEDGED, reason="AwaitingApproval")
    watching.await_phase("AwaitingApproval", "mine")
    cordon(watching, node)
    assert "app-driver: waits for PipelineDrain mine of its application" in said(watching, "EvacuationWaits")
    await_looks(watching, 3)
    assert drains(watching) == ["mine"]
    watching.patch_drain("mine", spec={"cancel": True})
    agent.await_withdrawn()
    agent.report(drain_id, DrainState.WITHDRAWN)
    eventually(lambda: len(drains(watching)) == 2, what="the driver's drain")


LATER = "2999-01-01T00:00:00Z"


@pytest.mark.parametrize(("time_added", "noted"), [(LATER, ""), ("", LATER)], ids=["of another clock", "made up by a tenant"])
def test_a_clearing_that_is_to_begin_later_has_begun(watching: World, node: str, time_added: str, noted: str) -> None:
    """Else what has failed would be tried anew at each look."""
    opted_in(watching, node, role="executor", executors=1)
    if noted:
        uid = watching.client.request("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
        metadata = {"name": "noted", "labels": {NODE_LABEL: uid}, "annotations": {SINCE: noted}}
        drain = drain_body(applicationRef={**drain_body()["spec"]["applicationRef"], "name": "none"})
        watching.client.request("POST", DRAINS.format(watching.namespace), body=drain | {"metadata": metadata})
    taint(watching, node, TAINT, **({"timeAdded": time_added} if time_added else {}))
    watching.operator.start()
    made, agent = asked_placement(watching)
    agent.respond(made["metadata"]["uid"], PlacementStatus.FAILED, "there is no room")
    said(watching, "EvacuationFailed")
    await_looks(watching, 3)
    assert len(placements(watching)) == 1
    assert made["metadata"]["annotations"][SINCE] < LATER


def test_nothing_is_begun_for_a_node_that_was_uncordoned(watching: World, node: str) -> None:
    opted_in(watching, node, role="executor", executors=1)
    watching.operator.start()
    cordon(watching, node)
    made = eventually(lambda: next(iter(placements(watching)), None), what="the placement")
    cordon(watching, node, on=False)
    await_looks(watching)
    watching.application.add_executor("2")
    watching.application.bind_pods(node, role="executor")
    await_looks(watching, 3)
    move_executor(watching, made["metadata"]["name"], "1")
    assert f"node {node} was to be clear by " in said(watching, "EvacuationSucceeded")
    assert len(placements(watching)) == 1


def test_the_time_that_the_command_gives_a_node_is_that_of_the_watch(watching: World, node: str) -> None:
    """The watch may well come before the command itself."""
    opted_in(watching, node)
    watching.operator.start()
    Cluster.over(watching.client).nodes.cordon(node, time_given(600, now()))
    (name,) = eventually(lambda: drains(watching), what="the driver's drain")
    spec = watching.client.request("GET", f"{DRAINS.format(watching.namespace)}/{name}")["spec"]
    assert 500 < spec["expirationSeconds"] <= 600, "and not half an hour"


def test_a_taint_that_returns_has_its_time_anew(watching: World, node: str, tmp_path: Path) -> None:
    """Also on a node that stays cordoned, as where Karpenter gives a disruption up and takes it up again."""
    returning = "example.com/comes-and-goes"
    opted_in(watching, node)
    cordon(watching, node)
    operator = watching.operator.twin(tmp_path / "twin.log", f"--node-taint={returning}=20")
    world = replace(watching, operator=operator)
    operator.start()
    try:
        eventually(lambda: drains(world), what="the driver's drain")
        taint(world, node, returning)
        await_looks(world)
        world.client.request("PATCH", f"/api/v1/nodes/{node}", body={"spec": {"taints": []}}, content_type=MERGE_PATCH)
        await_looks(world)
        time.sleep(20)
        taint(world, node, returning)
        await_looks(world)
        assert "NotEvacuated" not in {reason for reason, _ in story(world)}
        assert "the time of its node is over" in said(world, "NotEvacuated")
    finally:
        operator.kill()


def test_nodes_are_not_watched_by_default(own_world: World, node: str) -> None:
    opted_in(own_world, node)
    cordon(own_world, node)
    own_world.operator.start()
    own_world.create_drain()
    own_world.await_phase("Pending")
    assert drains(own_world) == ["drain"]
    assert "/nodes" not in own_world.operator.log()
    assert "poddisruptionbudgets" not in own_world.operator.log()
