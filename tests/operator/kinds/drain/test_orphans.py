"""Requests that are left of a PipelineDrain which went while no operator ran."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from spark_drain_operator.kinds.drain.orphans import remove_orphans
from spark_drain_operator.storage import Cluster
from spark_drain_store import DrainNotification, DrainState
from spark_drain_store.kube_client import KubeClient
from spark_drain_store.topics import TopicStore

from tests.operator.conftest import World, condition
from tests.operator.scripted_agent import ScriptedAgent

pytestmark = pytest.mark.apiserver


def leave(agent: ScriptedAgent, pipeline_drain: str, **fields: object) -> str:
    """Write a request as it would be left; returns its id."""
    drain_id = str(uuid4())
    request = DrainNotification(drain_id=drain_id, created_at=datetime.now(UTC), pipeline_drain=pipeline_drain, **fields)  # type: ignore[arg-type]
    agent.channel.requests.write({drain_id: request.to_json()})
    return drain_id


def test_it_is_removed_when_the_operator_starts(own_world: World) -> None:
    world = own_world
    world.operator.start()
    agent, drain_id = world.drain_at(DrainState.ACKNOWLEDGED)
    by_command = leave(agent, "")
    world.operator.kill()
    world.lose_drain()
    assert agent.notifications().keys() == {drain_id, by_command}
    world.operator.start()
    agent.await_removed(drain_id)
    assert agent.notifications().keys() == {by_command}


@pytest.mark.parametrize("options", [{}, {"execution": "PlanOnly"}])
@pytest.mark.parametrize("name", ["gone", "drain"])
def test_it_does_not_block_a_later_drain(world: World, name: str, options: dict[str, str]) -> None:
    """Also where a later drain has the same name."""
    agent = world.run_application()
    left = leave(agent, name, options=options)
    drain_id = world.create_drain()
    agent.await_removed(left)
    assert agent.await_notification().drain_id == drain_id


def test_what_somebody_else_has_written_blocks_it(world: World) -> None:
    agent = world.run_application()
    by_command = leave(agent, "")
    world.create_drain()
    assert condition(world.await_phase("Rejected"), "Accepted")["reason"] == "DrainAlreadyActive"  # type: ignore[index]
    assert agent.notifications().keys() == {by_command}


def test_a_request_that_is_changed_meanwhile_stays_for_the_next_look(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = world.run_application()
    left = leave(agent, "gone")
    client = KubeClient.from_kubeconfig(str(world.server.kubeconfig))
    cluster, write = Cluster.over(client), TopicStore.write

    def late(store: TopicStore, changes: dict[str, str | None], *, if_version: str | None = None) -> str:
        agent.channel.requests.whole.write({"something": "else"})
        return write(store, changes, if_version=if_version)

    with monkeypatch.context() as patched:
        patched.setattr(TopicStore, "write", late)
        remove_orphans(cluster, [world.namespace])
    assert agent.notifications().keys() == {left}
    remove_orphans(cluster, [world.namespace])
    assert not agent.notifications()
    client.close()
