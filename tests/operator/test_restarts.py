"""The operator is killed (SIGKILL) and restarted at each step of a drain; nothing is done twice, nothing is forgotten."""

import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from spark_drain_store import DrainState

from tests.operator.conftest import World, condition
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def test_killed_and_restarted_at_each_step(own_world: World) -> None:
    world = own_world
    world.operator.start()
    agent = world.run_application()
    drain_id = world.create_drain()
    first = agent.await_notification()
    restart(world)
    for state, phase in (
        (DrainState.ACKNOWLEDGED, "Acknowledged"),
        (DrainState.STOPPING, "Stopping"),
        (DrainState.COMMITTING, "Flushing"),
        (DrainState.REPORTING, "Reporting"),
    ):
        # What the agent says while the operator is away is found after its start.
        world.operator.kill()
        agent.report(drain_id, state)
        world.operator.start()
        world.await_phase(phase)
    world.operator.kill()
    agent.drained(drain_id)
    world.operator.start()
    world.application.await_suspend()
    restart(world)
    world.application.set_state("SUSPENDED")
    world.operator.kill()
    world.application.end_pods()
    assert [(item.drain_id, item.attempt, item.created_at) for item in agent.notifications().values()] == [(drain_id, 1, first.created_at)]
    world.operator.start()
    body = world.await_phase("Drained")
    assert condition(body, "Succeeded")["status"] == "True"  # type: ignore[index]
    assert agent.notifications() == {}
    restart(world)
    eventually(lambda: not world.drain()["metadata"].get("finalizers"), what="the finalizer is gone")
    assert world.drain()["status"]["completionTime"] == body["status"]["completionTime"]
    assert world.application.body()["metadata"]["generation"] == 2
    assert agent.notifications() == {}


def restart(world: World) -> None:
    world.operator.kill()
    world.operator.start()


@pytest.mark.parametrize("answered", [False, True])
def test_a_cancellation_while_the_operator_is_away(own_world: World, answered: bool) -> None:
    world = own_world
    world.operator.start()
    agent = world.run_application()
    drain_id = world.create_drain()
    agent.await_notification()
    world.operator.kill()
    if answered:
        agent.report(drain_id, DrainState.STOPPING)
    world.patch_drain(spec={"cancel": True})
    world.operator.start()
    if answered:
        agent.await_withdrawn()
        world.operator.kill()
        agent.report(drain_id, DrainState.WITHDRAWN, withdrawal="Withdrawn")
        world.operator.start()
    world.await_phase("Cancelled")
    assert not world.application.suspended
    assert agent.notifications() == {}


def test_two_operators_are_harmless(own_world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    world = own_world
    world.operator.start()
    other = world.operator.twin(tmp_path_factory.mktemp("twin") / "operator.log")
    other.start()
    try:
        agent = world.run_application()
        drain_id = world.create_drain()
        agent.await_notification()
        agent.drain(drain_id)
        world.application.obey_suspend()
        world.await_phase("Drained")
        eventually(lambda: ("Normal", "Drained") in world.events(), what="the last Event")
        other.kill()
        world.operator.kill()
        told = [reason for _, reason in world.events()]
        assert "Drained" in told
        assert len(told) == len({*told}), "each pass that stored something has told it, and no other"
        assert world.application.body()["metadata"]["generation"] == 2
    finally:
        if other.running:
            other.kill()


def test_liveness_is_served_and_sigterm_ends_it_well(own_world: World, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/healthz"
    operator = own_world.operator.twin(tmp_path / "live.log", "--liveness", address)
    operator.start()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def healthy() -> bool:
        try:
            with opener.open(address, timeout=2) as answer:
                return bool(answer.status == 200)
        except urllib.error.URLError:
            return False

    try:
        eventually(healthy, what="liveness answers")
        assert operator.stop() == 0
    finally:
        if operator.running:
            operator.kill()


def test_an_installation_that_deletes_nothing_any_more_completes_what_was_begun(own_world: World, tmp_path: Path) -> None:
    """Whether a drain is admissible is asked before it begins, not while its application stands still."""
    world = own_world
    world.operator.start()
    agent, drain_id = world.drain_at(DrainState.FLUSHING, afterDrain="Delete")
    world.operator.kill()
    world.operator = world.operator.twin(tmp_path / "upgraded.log")
    world.operator._command.remove("--allow-delete")
    world.operator.start()
    agent.drained(drain_id)
    eventually(lambda: not world.application.exists, what="the application is deleted")
    world.application.end_pods()
    world.await_phase("Drained")
    assert agent.notifications() == {}
    world.operator.stop()


def test_a_phase_written_by_hand_is_corrected(own_world: World) -> None:
    """The watch leaves out what has ended, by its phase; the look at what has ended does not believe the phase."""
    world = own_world
    world.operator.start()
    agent, drain_id = world.drain_at(DrainState.FLUSHING)
    world.operator.kill()
    world.patch_status(phase="Drained")
    world.operator.start()
    world.await_phase("Flushing")
    agent.drained(drain_id)
    world.application.await_suspend()
