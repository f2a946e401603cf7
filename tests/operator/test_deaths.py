"""The operator dies right after each single write request of a drain; the next one brings the drain to the same end."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_store import DrainState
from spark_drain_store.kube_client import KubeClient

from tests.operator.conftest import World, condition
from tests.operator.scripted_agent import ScriptedAgent
from tests.support.apiserver import ApiServer

pytestmark = pytest.mark.apiserver

_ENOUGH = 40


class Died(BaseException):
    """Passes every `except Exception`, as a SIGKILL would."""


class MortalClient(KubeClient):
    """Dies when the answer to its n-th write arrives."""

    writes_left = -1

    def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        answer = super().request(method, path, **options)
        if method != "GET" and not path.endswith("/events"):  # those are written beside, and nothing depends on them
            self.writes_left -= 1
            if self.writes_left == 0:
                raise Died(f"{method} {path}")
        return answer


@contextmanager
def connected(server: ApiServer) -> Iterator[MortalClient]:
    client = MortalClient.from_kubeconfig(str(server.kubeconfig))
    assert isinstance(client, MortalClient)
    yield client
    client.close()


class Operators:
    """One operator after another, in this process."""

    def __init__(self, client: MortalClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self.deaths: list[str] = []

    def settle(self) -> None:
        """Reconcile until nothing is to be done at once."""
        for _ in range(_ENOUGH):
            cluster = Cluster.over(self._client)
            reconciler = Reconciler(DrainKind(cluster, Settings(resync_seconds=600, allow_delete=True)), cluster)
            try:
                after = reconciler.reconcile(self._namespace, "drain")
            except Died as death:
                self.deaths.append(str(death))
                continue
            if after is None or after > 0:
                return
        raise AssertionError("it never settles")


def drained(world: World, agent: ScriptedAgent, operators: Operators) -> None:
    drain_id = next(iter(agent.notifications()))
    agent.report(drain_id, DrainState.ACKNOWLEDGED)
    operators.settle()
    agent.drain(drain_id)
    operators.settle()
    assert world.application.suspended
    world.application.obey_suspend()
    operators.settle()
    assert world.config_map("drain-result")["data"]["report.json"]


def restarted(world: World, agent: ScriptedAgent, operators: Operators) -> None:
    drain_id = next(iter(agent.notifications()))
    agent.drain(drain_id)
    operators.settle()
    world.application.obey_suspend()
    operators.settle()
    assert not world.application.suspended


def stopped_by_force(world: World, agent: ScriptedAgent, operators: Operators) -> None:
    drain_id = next(iter(agent.notifications()))
    agent.report(drain_id, DrainState.STALLED, message="query counts, batch 42: disk full")
    operators.settle()
    time.sleep(1.1)
    operators.settle()
    world.application.obey_suspend()
    operators.settle()
    assert not world.application.suspended


def deleted(world: World, agent: ScriptedAgent, operators: Operators) -> None:
    drain_id = next(iter(agent.notifications()))
    agent.drain(drain_id)
    operators.settle()
    world.application.end_pods()
    world.delete_config_maps()  # with their owner; the result goes too, and was there before
    operators.settle()


def cancelled(world: World, agent: ScriptedAgent, operators: Operators) -> None:
    drain_id = next(iter(agent.notifications()))
    agent.report(drain_id, DrainState.STOPPING)
    operators.settle()
    world.patch_drain(spec={"cancel": True})
    operators.settle()
    assert agent.notifications()[drain_id].withdrawn
    agent.report(drain_id, DrainState.WITHDRAWN, withdrawal="Withdrawn")
    operators.settle()
    assert not world.application.suspended


def unanswered(world: World, agent: ScriptedAgent, operators: Operators) -> None:
    world.patch_drain(spec={"cancel": True})
    operators.settle()
    assert not world.application.suspended


Story = Callable[[World, ScriptedAgent, Operators], None]
_SPECS: dict[Story, dict[str, Any]] = {
    deleted: {"afterDrain": "Delete"},
    restarted: {"afterDrain": "Restart"},
    stopped_by_force: {"afterDrain": "Restart", "onTimeout": "ForceStop", "timeoutSeconds": 1},
}
_CHANGES: dict[Story, int] = {drained: 1, restarted: 2, stopped_by_force: 2}
"""How often the spec of the application is changed."""


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        (drained, "Drained"),
        pytest.param(restarted, "Drained", marks=pytest.mark.soak),
        pytest.param(stopped_by_force, "DeadlineExceeded", marks=pytest.mark.soak),
        (deleted, "Drained"),
        (cancelled, "CancelRequested"),
        pytest.param(unanswered, "CancelRequested", marks=pytest.mark.soak),
    ],
)
def test_a_death_after_any_write_changes_nothing(api_server: ApiServer, own_world: World, story: Story, reason: str) -> None:
    world = own_world
    with connected(api_server) as client:
        for number in range(1, _ENOUGH):
            operators = Operators(client, world.namespace)
            agent = world.run_application(f"spark-{number}")
            drain_id = world.create_drain(**_SPECS.get(story, {}))
            client.writes_left = number
            operators.settle()
            first = agent.notifications()[drain_id]
            assert (first.attempt, first.run_id) == (1, f"spark-{number}")
            story(world, agent, operators)
            body = world.drain()
            ended = condition(body, "Succeeded")
            assert ended is not None
            assert ended["reason"] == reason, (operators.deaths, ended)
            assert not body["metadata"].get("finalizers"), operators.deaths
            assert agent.notifications() == {}, operators.deaths
            world.delete_drain()
            if story is not deleted:
                assert world.application.body()["metadata"]["generation"] == 1 + _CHANGES.get(story, 0), operators.deaths
                world.application.end_pods()
                world.application.delete()
            world.delete_config_maps()
            if not operators.deaths:
                assert number > 5
                return
    raise AssertionError("there is no end to the writes of a drain")
