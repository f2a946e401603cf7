"""What a drain costs the API server."""

import time

import pytest
from spark_drain_store import DrainState

from tests.operator.conftest import World
from tests.operator.scripted_agent import ScriptedAgent
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def cost(world: World, name: str, executors: int) -> list[str]:
    """Return the requests of one drain until it asks for the suspension; how long the pods then take is not the operator's doing."""
    application = ScriptedApplication(world.client, world.namespace, name)
    uid = application.create().start(f"spark-{name}", executors=executors)
    agent = ScriptedAgent(world.client, world.namespace, f"spark-{name}", uid, name)
    reference = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": name}
    before = len(world.requests)
    drain_id = world.create_drain(name, applicationRef=reference)
    agent.await_notification()
    for state, phase in ((DrainState.ACKNOWLEDGED, "Acknowledged"), (DrainState.FLUSHING, "Flushing"), (DrainState.REPORTING, "Reporting")):
        agent.report(drain_id, state)
        world.await_phase(phase, name)
    agent.drained(drain_id, executors=f"1-{executors}", executors_expected=executors)
    application.await_suspend()
    spent = world.requests[before:]
    application.obey_suspend()
    world.await_phase("Drained", name)
    return spent


def executor_lists(spent: list[str]) -> int:
    return sum("executor" in line for line in spent)


def test_requests_do_not_grow_with_executors_and_not_with_earlier_drains(own_world: World) -> None:
    own_world.operator.start()
    cost(own_world, "first", 1)
    small, large = cost(own_world, "small", 2), cost(own_world, "large", 60)
    assert executor_lists(small)
    # Two passes, of five reads each, merge or not as their events come.
    assert abs(len(large) - len(small)) <= 12, (small, large)
    assert executor_lists(large) <= executor_lists(small) + 1
    assert len(large) <= 90


def test_a_drain_that_waits_for_a_plan_is_looked_at_now_and_then(own_world: World) -> None:
    world = own_world
    world.operator.start()
    agent = world.run_application()
    plan = world.create_drain("plan", execution="PlanOnly")
    agent.await_notification()
    world.create_drain("second")
    world.await_condition("Accepted", "WaitingForPlan", "second")
    before = len(world.requests)
    time.sleep(6)
    assert len(world.requests) - before < 12
    agent.report(plan, DrainState.ACKNOWLEDGED, reason="Planned")
    eventually(lambda: [*agent.notifications()] not in ([], [plan]), seconds=10, what="the second one is asked")
