"""What a drain costs the API server."""

import re
import time
from dataclasses import dataclass

import pytest
from spark_drain_store import DrainState

from tests.operator.conftest import World
from tests.operator.scripted_agent import ScriptedAgent
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver

MOST_UNTIL_SUSPENDED, MOST = 14, 19
MOST_WHERE_ALL_IS_SLOW, MOST_IN_ALL = 20, 30
"""10 and 15 on a machine that does nothing else; on a busy one reports do not come fast, and pods take their time."""

_REFERENCE = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication"}
_STEPS = (
    (DrainState.ACKNOWLEDGED, "Acknowledged"),
    (DrainState.STOPPING, "Stopping"),
    (DrainState.COMMITTING, "Flushing"),
    (DrainState.FLUSHING, "Flushing"),
    (DrainState.REPORTING, "Reporting"),
)
_TO_BE_READY = ("selfsubjectaccessreviews", "limit=")
"""What an operator asks for once in a while, without any drain."""


@dataclass(frozen=True)
class Cost:
    """Verb and resource of each request of a drain, in order."""

    until_suspended: list[str]
    whole: list[str]

    def of_pods(self) -> int:
        return sum(request == "LIST pods" for request in self.whole)


def _named(line: str) -> str:
    found = re.search(r"kube_client: (\w+) \S+?(/apis?/\S+)", line)
    assert found is not None, line
    verb, path = found[1], found[2].partition("?")[0].split("/")
    rest = path[path.index("namespaces") + 2 :]
    return f"{'LIST' if verb == 'GET' and len(rest) == 1 else verb} {'/'.join(rest[::2])}"


def _spent(world: World, before: int) -> list[str]:
    lines = (line for line in world.requests[before:] if not any(part in line for part in _TO_BE_READY) or "/pods?" in line)
    return [_named(line) for line in lines if "limit=1&" not in line and not line.endswith("limit=1")]


def cost(world: World, application: ScriptedApplication, name: str, *, executors: int = 2, step_by_step: bool = False) -> Cost:
    """Drain an application that is started for it."""
    uid = application.start(f"spark-{name}", executors=executors)
    agent = ScriptedAgent(world.client, world.namespace, f"spark-{name}", uid, application.name)
    time.sleep(1)  # what its start has caused is over
    before = len(world.requests)
    drain_id = world.create_drain(name, applicationRef={**_REFERENCE, "name": application.name})
    agent.await_notification()
    for state, phase in _STEPS:
        agent.report(drain_id, state)
        if step_by_step:
            world.await_phase(phase, name)
    agent.drained(drain_id, executors=f"1-{executors}", executors_expected=executors)
    application.await_suspend()
    until_suspended = _spent(world, before)
    application.obey_suspend()
    world.await_phase("Drained", name)
    eventually(lambda: ("Normal", "Drained") in world.events(name), what="the last Event")
    eventually(lambda: not world.drain(name)["metadata"].get("finalizers"), what="the finalizer is gone")
    return Cost(until_suspended, _spent(world, before))


def test_what_a_drain_asks_for(own_world: World) -> None:
    world = own_world
    world.operator.start()
    cost(world, world.application.create(), "to-be-ready")
    second = ScriptedApplication(world.client, world.namespace, "second").create()
    small = cost(world, second, "small")
    large = cost(world, ScriptedApplication(world.client, world.namespace, "large").create(), "large", executors=60)
    second.resume()
    again = cost(world, second, "again")
    second.resume()
    slow = cost(world, second, "slow", step_by_step=True)
    for name, each in (("small", small), ("large", large), ("again", again), ("step by step", slow)):
        print(f"{name}: {len(each.until_suspended)} until it is suspended, {len(each.whole)} in all: {', '.join(each.whole)}")
    fast = (small, large, again)
    assert min(len(each.until_suspended) for each in fast) <= MOST_UNTIL_SUSPENDED, fast
    assert min(len(each.whole) for each in fast) <= MOST, fast
    for each in (*fast, slow):
        assert len(each.until_suspended) <= MOST_WHERE_ALL_IS_SLOW, each
        assert len(each.whole) <= MOST_IN_ALL, each
    assert small.of_pods() >= 2, "the executors before the suspension, and what is left after it"
    assert sum(request == "LIST pods" for request in large.until_suspended) == 1, "a page has a thousand pods"


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
