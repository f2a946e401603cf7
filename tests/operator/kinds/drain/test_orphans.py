"""Requests that are left of a PipelineDrain which went while no operator ran."""

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from spark_drain_operator.handlers.orphans import orphans
from spark_drain_operator.kinds.drain.orphans import remove_orphans
from spark_drain_operator.storage import Cluster
from spark_drain_store import DrainNotification, DrainState
from spark_drain_store.kube_client import MERGE_PATCH, KubeClient
from spark_drain_store.topics import TopicStore

from tests.operator.conftest import World, condition
from tests.operator.scripted_agent import ScriptedAgent
from tests.support.apiserver import ApiServer, new_namespaces
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


@pytest.fixture
def cluster(api_server: ApiServer) -> Iterator[Cluster]:
    client = KubeClient.from_kubeconfig(str(api_server.kubeconfig))
    yield Cluster.over(client)
    client.close()


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


def test_as_many_as_a_config_map_holds_do_not_block_it(world: World) -> None:
    agent = world.run_application()
    forged = [DrainNotification(drain_id=str(uuid4()), created_at=datetime.now(UTC), pipeline_drain="gone") for _ in range(1500)]
    agent.channel.requests.write({request.drain_id: request.to_json() for request in forged})
    drain_id = world.create_drain()
    eventually(lambda: agent.notifications().keys() == {drain_id}, what="only its own request is there", seconds=120)


def test_what_somebody_else_has_written_blocks_it(world: World) -> None:
    agent = world.run_application()
    by_command = leave(agent, "")
    world.create_drain()
    assert condition(world.await_phase("Rejected"), "Accepted")["reason"] == "DrainAlreadyActive"  # type: ignore[index]
    assert agent.notifications().keys() == {by_command}


@pytest.mark.parametrize("name", ["..", "a/b", "a" * 100_000])
def test_one_of_a_name_that_no_pipeline_drain_has_is_somebody_elses(world: World, cluster: Cluster, name: str) -> None:
    agent = world.run_application()
    left = leave(agent, name)
    remove_orphans(cluster, [world.namespace])
    world.create_drain()
    assert condition(world.await_phase("Rejected"), "Accepted")["reason"] == "DrainAlreadyActive"  # type: ignore[index]
    assert agent.notifications().keys() == {left}


def test_one_that_cannot_be_removed_does_not_hold_up_others(world: World, cluster: Cluster) -> None:
    """Who may write ConfigMaps in one namespace decides nothing for the others."""
    with new_namespaces(world.server, 1) as (other,):
        refusing = ScriptedAgent(world.client, other, "spark-one", "uid", "app")
        kept = leave(refusing, "gone")
        path = f"/api/v1/namespaces/{other}/configmaps/sparkapplication-app-agent-requests"
        world.client.request("PATCH", path, body={"immutable": True}, content_type=MERGE_PATCH)
        agent = world.run_application()
        leave(agent, "gone")
        assert orphans(cluster, lambda: [other, world.namespace])._work() >= 600
        assert not agent.notifications()
        assert refusing.notifications().keys() == {kept}


def test_a_request_that_is_changed_meanwhile_stays_for_the_next_look(
    world: World, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = world.run_application()
    left = leave(agent, "gone")
    write = TopicStore.write

    def late(store: TopicStore, changes: dict[str, str | None], *, if_version: str | None = None) -> str:
        agent.channel.requests.whole.write({"something": "else"})
        return write(store, changes, if_version=if_version)

    with monkeypatch.context() as patched:
        patched.setattr(TopicStore, "write", late)
        remove_orphans(cluster, [world.namespace])
    assert agent.notifications().keys() == {left}
    remove_orphans(cluster, [world.namespace])
    assert not agent.notifications()
