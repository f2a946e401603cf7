"""afterDrain Restart: the application is started again once nothing of it is left."""

import pytest
from spark_drain_store import DrainState

from tests.operator.conftest import World, condition
from tests.operator.scripted_kubeflow import BackgroundKubeflow

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
