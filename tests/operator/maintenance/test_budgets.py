"""Evictions wait until pods are moved, and never for ever."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from spark_drain_operator.maintenance.budgets import BUDGET_LABEL, budget_of, selects
from spark_drain_operator.storage.nodes import PodOnNode, Role
from spark_drain_store import DrainState
from spark_drain_store.kube_client import ApiError, ApiUnavailableError
from spark_drain_store.placement_messages import PlacementStatus

from tests.operator.conftest import World
from tests.operator.kinds.placement.conftest import placement_agent
from tests.operator.maintenance.conftest import SHORT, WATCH, cordon, taint
from tests.operator.maintenance.test_watch import opted_in, placements, said
from tests.operator.process import OperatorProcess, without_proxy
from tests.operator.scripted_kubeflow import BackgroundKubeflow, ScriptedApplication, application_body
from tests.support.apiserver import ROOT, ApiServer, new_namespaces
from tests.support.policies import freeze, refused
from tests.support.waiting import eventually

APPLICATION = application_body("a", driver={"labels": {"team": "data"}})
APPLICATION["metadata"] |= {"namespace": "team", "uid": "uid-of-a"}
DRIVER = PodOnNode("team", "a-driver", "uid-d", "a", Role.DRIVER)
EXECUTOR = PodOnNode("team", "a-exec-7", "uid-7", "a", Role.EXECUTOR, executor_id="7")


def test_a_budget_is_open_for_what_is_stuck() -> None:
    whole, open_ = budget_of(APPLICATION, []), budget_of(APPLICATION, [EXECUTOR])
    assert whole is not None
    assert open_ is not None
    assert whole["metadata"]["ownerReferences"][0]["uid"] == "uid-of-a"
    assert [term["key"] for term in whole["spec"]["selector"]["matchExpressions"]] == ["spark-role"]
    assert open_["spec"]["selector"]["matchExpressions"][1:] == [{"key": "spark-exec-id", "operator": "NotIn", "values": ["7"]}]
    assert budget_of(APPLICATION, [DRIVER]) is None, "its executors go with it"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, True),
        (None, False),
        ({"matchLabels": {"sparkoperator.k8s.io/app-name": "a"}}, True),
        ({"matchLabels": {"sparkoperator.k8s.io/app-name": "b"}}, False),
        ({"matchLabels": {"team": "data"}}, True),
        ({"matchLabels": {"team": "data", "spark-role": "executor"}}, False),
        ({"matchExpressions": [{"key": "spark-role", "operator": "In", "values": ["executor"]}]}, True),
        ({"matchExpressions": [{"key": "spark-role", "operator": "NotIn", "values": ["driver", "executor"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, True),
    ],
)
def test_which_budgets_of_others_hold_for_an_application(selector: Mapping[str, Any] | None, expected: bool) -> None:
    assert selects({"spec": {"selector": selector}}, APPLICATION) is expected


LAUNCHED = "sparkoperator.k8s.io/launched-by-spark-operator"
"""A label that kubeflow's operator gives all pods."""


def test_labels_of_pods_that_are_there_count() -> None:
    budget = {"spec": {"selector": {"matchLabels": {LAUNCHED: "true"}}}}
    assert not selects(budget, APPLICATION)
    assert selects(budget, APPLICATION, [{}, {LAUNCHED: "true"}])


def selectors(world: World) -> dict[str, str]:
    """Return the operator's budgets: name and selector."""
    path = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets"
    items = world.client.request("GET", path, query={"labelSelector": BUDGET_LABEL})["items"]
    return {item["metadata"]["name"]: json.dumps(item["spec"]["selector"]) for item in items}


def budgets(world: World) -> list[str]:
    return list(selectors(world))


def counted(world: World) -> dict[str, Any]:
    """Return the status of the budget once Kubernetes' controller has written one."""
    path = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets/app-evictions-wait"
    status: dict[str, Any] = world.client.request("GET", path).get("status") or {}
    return status if status.get("conditions") else {}


def await_budget(world: World) -> None:
    eventually(lambda: budgets(world) == ["app-evictions-wait"], what="the budget")


def evict(world: World, pod: str) -> bool:
    """Ask for an eviction; returns whether it was granted."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": world.namespace}}
    try:
        world.client.request("POST", f"/api/v1/namespaces/{world.namespace}/pods/{pod}/eviction", body=body)
    except (ApiError, ApiUnavailableError) as error:
        if error.status != 429:
            raise
        return False
    return True


@pytest.mark.apiserver
def test_an_eviction_waits_until_the_driver_has_left(watching: World, node: str) -> None:
    agent = opted_in(watching, node)
    watching.operator.start()
    await_budget(watching)
    assert not evict(watching, "app-driver")
    status = eventually(lambda: counted(watching), what="Kubernetes has looked at the budget")
    assert status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0), "or an alert of the usual rules fires"
    assert not evict(watching, "app-driver")
    cordon(watching, node)
    notification = agent.await_notification()
    assert not evict(watching, "app-driver")
    assert not evict(watching, "app-spark-one-exec-1")
    with BackgroundKubeflow(watching.application):
        agent.drain(notification.drain_id)
    watching.server.run_kubectl("drain", node, "--ignore-daemonsets", "--timeout=60s")
    said(watching, "EvacuationSucceeded")
    assert budgets(watching) == ["app-evictions-wait"], "the next run has it from its start"


@pytest.mark.apiserver
def test_an_eviction_does_not_wait_when_the_time_is_over(watching: World, node: str, other_node: str) -> None:
    opted_in(watching, node, role="executor", executors=1)
    watching.application.bind_pods(other_node, role="driver")
    watching.operator.start()
    await_budget(watching)
    taint(watching, node, SHORT)
    eventually(lambda: len(placements(watching)) == 1, what="the placement")
    assert placements(watching)[0]["spec"]["expirationSeconds"] <= 5
    assert "within the " in said(watching, "EvacuationStarted")
    eventually(lambda: evict(watching, "app-spark-one-exec-1"), what="the eviction passes")
    assert not evict(watching, "app-driver"), "only what is stuck is evicted"
    assert "not moved any more, the time of its node is over" in said(watching, "NotEvacuated")
    watching.application.end_pod("app-spark-one-exec-1")
    watching.application.add_executor("1")
    eventually(lambda: "NotIn" not in selectors(watching)["app-evictions-wait"], what="the budget is closed again")
    assert not evict(watching, "app-spark-one-exec-1")


@pytest.mark.apiserver
def test_an_eviction_whose_move_has_failed_for_good_passes(watching: World, node: str, other_node: str) -> None:
    opted_in(watching, node, role="executor", executors=1)
    watching.application.bind_pods(other_node, role="driver")
    watching.operator.hurry().start()
    cordon(watching, node)
    agent, answered = placement_agent(watching), set[str]()
    while len(answered) < 3:
        new = eventually(lambda: agent.placements().requests.keys() - answered, what="another attempt", seconds=60)
        for uid in new:
            assert not evict(watching, "app-spark-one-exec-1")
            agent.respond(uid, PlacementStatus.BAD_REQUEST, "there is no room")
            answered.add(uid)
    eventually(lambda: evict(watching, "app-spark-one-exec-1"), what="the eviction passes")
    assert "not moved any more, 3 attempts have failed" in said(watching, "NotEvacuated")
    assert "failed: there is no room" in said(watching, "EvacuationFailed")


@pytest.mark.apiserver
def test_an_eviction_of_a_driver_that_has_not_started_passes(watching: World, node: str) -> None:
    """Kubernetes asks no budget for a pod that is Pending."""
    watching.application.create().submit("spark-one")
    watching.application.annotate(evacuate="true")
    watching.application.bind_pods(node)
    watching.operator.start()
    await_budget(watching)
    eventually(lambda: counted(watching), what="Kubernetes has looked at the budget")
    assert evict(watching, "app-driver")


@pytest.mark.apiserver
def test_a_budget_follows_the_annotation(watching: World, node: str, tmp_path: Path) -> None:
    watching.run_application()
    watching.operator.start()
    watching.application.annotate(evacuate="true")
    await_budget(watching)
    watching.application.annotate(evacuate="false")
    eventually(lambda: budgets(watching) == [], what="the budget is removed")
    watching.application.annotate(evacuate="true")
    await_budget(watching)
    watching.operator.kill()
    without = OperatorProcess(without_proxy(watching.server.environment()), watching.namespace, tmp_path / "without.log", *WATCH)
    without.start()
    try:
        eventually(lambda: budgets(watching) == [], what="an operator that makes none removes what is left")
    finally:
        without.kill()


@pytest.mark.apiserver
@pytest.mark.parametrize(
    "selector",
    [
        pytest.param("sparkoperator.k8s.io/app-name: app", id="example"),
        pytest.param(f'{LAUNCHED}: "true"', id="of all applications", marks=pytest.mark.soak),
    ],
)
def test_there_is_no_second_budget_beside_one_of_the_user(watching: World, node: str, selector: str) -> None:
    """Kubernetes refuses to evict a pod with two of them at all: 500, not 429."""
    agent = opted_in(watching, node)
    watching.server.run_kubectl("label", "pods", "-n", watching.namespace, "-l", "spark-role", f"{LAUNCHED}=true")
    mine = (ROOT / "examples/nodes/budget.yaml").read_text().replace("clicks", watching.application.name)
    mine = mine.replace("sparkoperator.k8s.io/app-name: app", selector)
    watching.operator.start()
    await_budget(watching)
    watching.server.run_kubectl("apply", "-n", watching.namespace, "-f", "-", text=mine)
    cordon(watching, node)
    agent.report(agent.await_notification().drain_id, DrainState.ACKNOWLEDGED)
    assert "PodDisruptionBudget app-not-evicted holds for its pods" in said(watching, "BudgetProblem")
    assert budgets(watching) == []
    assert not evict(watching, "app-driver")


@pytest.mark.apiserver
def test_a_namespace_that_refuses_does_not_hold_up_the_others(api_server: ApiServer, tmp_path: Path) -> None:
    with new_namespaces(api_server, 2) as names:
        refusing, willing = sorted(names)
        log = tmp_path / "operator.log"
        operator = OperatorProcess(without_proxy(api_server.environment()), ",".join(names), log, *WATCH, "--node-budgets")
        worlds = [World(api_server, name, operator, ScriptedApplication(api_server.client, name)) for name in (refusing, willing)]
        for world in worlds:
            world.application.create()
            world.application.annotate(evacuate="true")
        operator.hurry().start()
        for world in worlds:
            await_budget(world)
        policy = freeze(refusing, "DELETE", "policy", "v1")
        api_server.run_kubectl("apply", "-f", "-", text=policy)
        try:
            path = f"/apis/policy/v1/namespaces/{refusing}/poddisruptionbudgets/app-evictions-wait"
            eventually(lambda: "change freeze" in refused(api_server.client, "DELETE", path, dry_run=True), what="the policy is in force")
            for world in worlds:
                world.application.annotate(evacuate="false")
            eventually(lambda: budgets(worlds[1]) == [], what="the other one is removed")
            assert "change freeze" in said(worlds[0], "BudgetProblem")
        finally:
            api_server.run_kubectl("delete", "-f", "-", text=policy)
        eventually(lambda: budgets(worlds[0]) == [], what="it is tried again")
        assert operator.stop() == 0
