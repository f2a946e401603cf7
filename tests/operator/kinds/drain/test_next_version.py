"""A next version that is applied while a drain goes on or waits: what was drained is scaled down, and nothing else."""

import time
from datetime import timedelta
from typing import Any

import pytest
from spark_drain_operator.clock import format_time, now
from spark_drain_store import DrainState

from tests.operator.conftest import World, condition
from tests.support.apiserver import DRAINS
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


@pytest.mark.parametrize("slow", [False, True], ids=["", "an executor is left"])
def test_a_drained_application_that_is_resumed_before_the_drain_has_ended_is_left_alone(world: World, slow: bool) -> None:
    """Its deadline passes, and an old report arrives."""
    agent, drain_id = world.drained(timeoutSeconds=5, onTimeout="ForceStop")
    world.application.await_suspend()
    world.await_condition("ScaledDown", "WaitingForPods")
    world.application.end_pods()
    if slow:
        world.application.add_executor("9", owned=False)
    agent.report(drain_id, DrainState.STOPPING)
    world.application.change(image="next", suspend=False)
    world.application.start("spark-two")
    if slow:
        time.sleep(6)
        assert world.drain()["status"]["phase"] == "ScalingDown"
        world.application.end_pod("app-spark-one-exec-9")
    body = world.await_phase("Drained")
    assert condition(body, "ScaledDown")["reason"] == "ApplicationResumed"  # type: ignore[index]
    assert body["status"]["run"]["id"] == "spark-one"
    assert not world.application.suspended


@pytest.mark.parametrize("reverted", ["before the status is written", "and v2 has ended"])
def test_a_next_version_is_known_by_its_spec(own_world: World, reverted: str) -> None:
    """The operator stands still after it has asked for the suspension."""
    world = own_world
    world.operator.start()
    world.drained()
    world.application.await_suspend()
    world.operator.kill()
    world.application.obey_suspend()
    if reverted == "before the status is written":
        world.patch_status(scaleDown=None)
    world.application.change(image="next", suspend=False)
    world.application.start("spark-two")
    if reverted == "and v2 has ended":
        world.application.end_pods()
        world.application.set_state("FAILED")
    world.operator.start()
    body = world.await_phase("Drained")
    assert condition(body, "ScaledDown")["reason"] == "ApplicationResumed"  # type: ignore[index]
    assert not world.application.suspended


@pytest.mark.parametrize("after", ["Suspend", "Delete"])
def test_a_next_version_that_is_applied_while_the_drained_driver_is_held_is_left_alone(own_world: World, after: str) -> None:
    world = own_world
    world.operator.start()
    agent, drain_id = world.drain_at(DrainState.REPORTING, afterDrain=after)
    world.operator.kill()
    agent.drained(drain_id)
    world.application.change(image="next")
    world.operator.start()
    world.await_condition("ScaledDown", "SpecChanged")
    world.application.restart("spark-two")
    body = world.await_phase("Drained")
    assert condition(body, "ScaledDown")["reason"] == "ApplicationResumed"  # type: ignore[index]
    assert not world.application.suspended


@pytest.mark.parametrize("after", ["Suspend", "Delete"])
@pytest.mark.parametrize("changed", [False, True], ids=["restarted", "next version"])
def test_a_complete_drain_that_waits_scales_down_what_was_drained_and_nothing_else(world: World, changed: bool, after: str) -> None:
    """Its driver is restarted by Spark's operator, and held; or somebody applies the next version."""
    agent, drain_id = world.complete_without_result(afterDrain=after)
    if changed:
        world.application.change(image="next")
    uid = world.application.restart("spark-two")
    if not changed:
        agent.restarted("spark-two", uid)
        agent.report(drain_id, DrainState.REPORTING)
    world.free_result_name()
    if not changed:
        agent.drained(drain_id)
        if after == "Suspend":
            world.application.obey_suspend()
    body = world.await_phase("Drained")
    scaled = condition(body, "ScaledDown")
    assert scaled is not None
    assert scaled["reason"] == ("ApplicationResumed" if changed else "ApplicationSuspended" if after == "Suspend" else "ApplicationDeleted")
    assert world.application.exists == (changed or after == "Suspend")
    assert not changed or not world.application.suspended
    assert world.config_map("drain-result")["data"]["report.json"]


def test_what_was_drained_in_time_is_drained_however_late_the_operator_is(own_world: World) -> None:
    world = own_world
    world.operator.start()
    agent, drain_id = world.drain_at(DrainState.REPORTING, timeoutSeconds=6)
    world.operator.kill()
    agent.drained(drain_id)
    time.sleep(7)
    world.operator.start()
    world.application.obey_suspend()
    world.await_phase("Drained")


@pytest.mark.parametrize("after", ["Suspend", "Delete"])
def test_a_changed_spec_that_its_operator_does_not_act_on_is_suspended(world: World, after: str) -> None:
    """Kubeflow compares specs with their types, may be told to ignore fields, or was away."""
    agent, drain_id = world.drain_at(DrainState.FLUSHING, afterDrain=after)
    world.application.change(driver={"coreLimit": "1000m"})
    agent.drained(drain_id)
    world.await_condition("ScaledDown", "SpecChanged")
    assert not world.application.suspended
    changed_for(world, 31)
    world.application.obey_suspend()
    assert scaled_down(world.await_phase("Drained")) == "ApplicationSuspended"


def test_each_change_gives_its_operator_the_time_to_act_on_it(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING)
    world.application.change(driver={"coreLimit": "1000m"})
    changed_for(world, 31)
    world.application.change(image="next")
    agent.drained(drain_id)
    world.await_condition("ScaledDown", "SpecChanged")
    assert not world.application.suspended
    world.application.restart("spark-two")
    assert scaled_down(world.await_phase("Drained")) == "ApplicationResumed"


@pytest.mark.parametrize("after", ["Suspend", "Delete"])
def test_a_next_version_stays_one_when_its_change_is_reverted(world: World, after: str) -> None:
    world.complete_without_result(afterDrain=after)
    world.application.change(image="next")
    world.application.restart("spark-two")
    eventually(lambda: world.drain()["status"].get("nextVersion", {}).get("runId") == "spark-two", what="the next version is seen")
    world.application.change(image="example/pipeline")
    world.free_result_name()
    assert scaled_down(world.await_phase("Drained")) == "ApplicationResumed"
    assert not world.application.suspended


def test_a_complete_drain_whose_restarted_driver_does_not_repeat_its_report_is_stalled(own_world: World) -> None:
    world = own_world
    world.operator.start()
    agent, drain_id = world.complete_without_result()
    world.operator.kill()  # or it might keep the result between the next two lines
    agent.restarted("spark-two", world.application.restart("spark-two"))
    agent.report(drain_id, DrainState.FLUSHING)
    world.free_result_name()
    world.operator.start()
    eventually(lambda: "has not repeated" in world.drain()["status"]["message"], what="it waits")
    agent.report(drain_id, DrainState.FLUSHING, updated_at=now() - timedelta(seconds=301))
    assert world.await_condition("Stalled", "WaitingForReport")["status"] == "True"
    world.delete_drain()
    world.application.obey_suspend()
    eventually(world.drain_is_gone, what="the drain is gone")


def test_executors_of_every_run_that_was_drained_are_waited_for_before_the_next_version(world: World) -> None:
    agent, drain_id = world.complete_without_result()
    agent.restarted("spark-two", world.application.restart("spark-two"))
    agent.drained(drain_id)
    eventually(lambda: world.drain()["status"]["application"]["runId"] == "spark-two", what="the restarted driver is seen")
    world.application.change(image="next")
    world.application.restart("spark-three")
    for world.application.run_id in ("spark-one", "spark-two"):
        world.application.add_executor("9", owned=False)
    world.free_result_name()
    for run_id in ("spark-one", "spark-two"):
        pod = f"app-{run_id}-exec-9"
        eventually(lambda pod=pod: pod in world.drain()["status"]["message"], what="it is waited for")  # type: ignore[misc]
        world.application.end_pod(pod)
    assert scaled_down(world.await_phase("Drained")) == "ApplicationResumed"


def test_a_complete_drain_whose_driver_no_node_takes_is_stalled(world: World) -> None:
    world.complete_without_result()
    world.application.set_state("FAILING")
    world.application.end_pods()
    world.application.submit("spark-two")
    world.free_result_name()
    world.await_condition("ScaledDown", "WaitingForPods")
    conditions = world.drain()["status"]["conditions"]
    for each in conditions:
        if each["type"] == "ExecutorsDrained":
            each["lastTransitionTime"] = format_time(now() - timedelta(seconds=301))
    world.patch_status(conditions=conditions)
    assert world.await_condition("Stalled", "WaitingForPods")["status"] == "True"


def test_what_its_operator_neither_ends_nor_keeps_is_stalled(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING)
    world.application.change(image="next")
    world.application.set_state("INVALIDATING")
    agent.drained(drain_id)
    changed_for(world, 301)
    stalled = world.await_condition("Stalled", "SpecChanged")
    assert stalled["status"] == "True"
    assert "state is INVALIDATING: look at its operator and at driver pod app-driver" in stalled["message"]
    world.application.restart("spark-two")
    assert scaled_down(world.await_phase("Drained")) == "ApplicationResumed"


def test_a_changed_spec_keeps_nothing_from_being_stopped_by_force(world: World) -> None:
    world.drain_at(DrainState.STOPPING, timeoutSeconds=3, onTimeout="ForceStop")
    world.application.change(driver={"coreLimit": "1000m"})
    world.application.set_state("SUBMITTED")
    world.await_condition("ScaledDown", "SpecChanged")
    changed_for(world, 31)
    world.application.obey_suspend()
    world.await_phase("ForceStopped")


def test_a_next_version_is_not_stopped_by_force_in_place_of_the_one_that_was(own_world: World) -> None:
    """The operator is killed between the suspension and the next write of the status."""
    world = own_world
    world.operator.start()
    world.drain_at(DrainState.STOPPING, timeoutSeconds=3, onTimeout="ForceStop")
    world.application.await_suspend()
    world.operator.kill()
    world.patch_status(scaleDown=None)
    world.application.obey_suspend()
    world.application.change(image="next", suspend=False)
    world.application.start("spark-two")
    world.operator.start()
    world.await_phase("ForceStopped")
    assert not world.application.suspended


def test_empty_fields_that_a_webhook_adds_make_no_next_version(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING)
    world.application.change(deps={}, restartPolicy={}, driver={"labels": {}}, volumes=[])
    agent.drained(drain_id)
    world.application.obey_suspend(seconds=15)
    assert scaled_down(world.await_phase("Drained")) == "ApplicationSuspended"


def test_a_next_version_that_repeats_the_report_while_the_operator_is_away_is_left_alone(own_world: World) -> None:
    world = own_world
    world.operator.start()
    agent, drain_id = world.drain_at(DrainState.REPORTING)
    world.operator.kill()
    agent.drained(drain_id)
    world.application.change(image="next")
    agent.restarted("spark-two", world.application.restart("spark-two"))
    agent.report(drain_id, DrainState.REPORTING)
    world.operator.start()
    eventually(lambda: world.drain()["status"]["run"]["id"] == "spark-two", what="its report is seen")
    agent.drained(drain_id)
    assert scaled_down(world.await_phase("Drained")) == "ApplicationResumed"
    assert not world.application.suspended


def test_a_drained_driver_that_was_restarted_is_waited_for_before_the_next_version(world: World) -> None:
    agent, drain_id = world.complete_without_result()
    agent.restarted("spark-two", world.application.restart("spark-two"))
    agent.drained(drain_id)
    eventually(lambda: world.drain()["status"]["application"]["runId"] == "spark-two", what="the restarted driver is seen")
    world.application.change(image="next")
    world.free_result_name()
    world.await_condition("ScaledDown", "SpecChanged")
    world.application.restart("spark-three")
    assert scaled_down(world.await_phase("Drained")) == "ApplicationResumed"


@pytest.mark.soak
def test_a_run_that_repeats_the_report_after_the_deadline_does_not_make_it_late(own_world: World) -> None:
    world = own_world
    world.operator.start()
    agent, drain_id = world.drain_at(DrainState.REPORTING, timeoutSeconds=6)
    world.operator.kill()
    agent.drained(drain_id)
    time.sleep(7)
    agent.restarted("spark-two", world.application.restart("spark-two"))
    agent.report(drain_id, DrainState.REPORTING)
    agent.drained(drain_id)
    world.operator.start()
    world.application.obey_suspend()
    world.await_phase("Drained")


@pytest.mark.parametrize("state", ["unanswered", "AwaitingApproval", "Acknowledged", "Stopping"])
def test_a_next_version_that_starts_before_the_point_of_no_return_ends_the_drain(world: World, state: str) -> None:
    """Its agent inherits what was acknowledged, and lets go of it when it is withdrawn; no deadline stops it by force."""
    policies: dict[str, Any] = {"timeoutSeconds": 8, "onTimeout": "ForceStop"}
    agent = world.run_application()
    drain_id = world.create_drain(execution="AfterApproval" if state == "AwaitingApproval" else "Immediate", **policies)
    agent.await_notification()
    if state != "unanswered":
        reason = state if state == "AwaitingApproval" else ""
        agent.report(drain_id, DrainState.STOPPING if state == "Stopping" else DrainState.ACKNOWLEDGED, reason=reason)
        world.await_phase(state)
    world.application.change(image="next")
    agent.restarted("spark-two", world.application.restart("spark-two"))
    if state != "unanswered":
        agent.await_withdrawn()
        if state == "AwaitingApproval":
            world.patch_drain(spec={"approved": True})
        else:
            time.sleep(9)
        agent.report(drain_id, DrainState.WITHDRAWN, withdrawal="Withdrawn")
    body = world.await_phase("Failed")
    assert condition(body, "Succeeded")["reason"] == "SpecChanged"  # type: ignore[index]
    assert "nothing is drained" in body["status"]["message"]
    agent.await_no_notification()
    assert not world.application.suspended


@pytest.mark.parametrize("state", [DrainState.ACKNOWLEDGED, DrainState.STOPPING])
def test_a_pinned_drain_is_not_inherited_before_the_point_of_no_return(world: World, state: DrainState) -> None:
    agent, drain_id = world.drain_at(state, runId="spark-one")
    agent.restarted("spark-two", world.application.restart("spark-two"))
    agent.await_withdrawn()
    agent.report(drain_id, DrainState.WITHDRAWN, withdrawal="Withdrawn")
    assert condition(world.await_phase("Rejected"), "Succeeded")["reason"] == "StaleRunId"  # type: ignore[index]
    assert not world.application.suspended


def test_a_next_version_that_passes_the_point_of_no_return_before_it_is_told_is_left_alone(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.STOPPING)
    world.application.change(image="next")
    agent.restarted("spark-two", world.application.restart("spark-two"))
    agent.await_withdrawn()
    agent.report(drain_id, DrainState.COMMITTING, withdrawal="TooLate")
    agent.drained(drain_id, withdrawal="TooLate")
    assert scaled_down(world.await_phase("Drained")) == "ApplicationResumed"
    assert not world.application.suspended


@pytest.mark.parametrize("after", ["Suspend", "Delete"])
@pytest.mark.parametrize("state", [DrainState.COMMITTING, DrainState.FLUSHING, DrainState.REPORTING])
def test_a_next_version_that_starts_past_the_point_of_no_return_is_left_alone(world: World, state: DrainState, after: str) -> None:
    agent, drain_id = world.drain_at(state, "Flushing" if state is DrainState.COMMITTING else "", afterDrain=after)
    world.application.change(image="next")
    agent.restarted("spark-two", world.application.restart("spark-two"))
    eventually(lambda: world.drain()["status"].get("nextVersion", {}).get("runId") == "spark-two", what="the next version is seen")
    agent.drained(drain_id)
    assert scaled_down(world.await_phase("Drained")) == "ApplicationResumed"
    assert not world.application.suspended


def test_a_next_version_that_starts_past_the_point_of_no_return_is_not_stopped_by_force(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING, onTimeout="ForceStop")
    world.application.change(image="next")
    agent.restarted("spark-two", world.application.restart("spark-two"))
    agent.report(drain_id, DrainState.STALLED, reason="RecoveryNeedsPreviousVersion")
    eventually(lambda: world.drain()["status"].get("nextVersion", {}).get("runId") == "spark-two", what="the next version is seen")
    world.patch_drain(spec={"timeoutSeconds": 1})
    assert "what runs now is left alone" in world.await_phase("ForceStopped")["status"]["message"]
    assert not world.application.suspended


def test_the_previous_version_that_is_started_again_to_finish_its_drain_is_scaled_down(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING)
    world.application.change(image="next")
    agent.restarted("spark-two", world.application.restart("spark-two"))
    agent.report(drain_id, DrainState.STALLED, reason="RecoveryNeedsPreviousVersion")
    eventually(lambda: world.drain()["status"].get("nextVersion", {}).get("runId") == "spark-two", what="the next version is seen")
    world.application.change(image="example/pipeline")
    agent.restarted("spark-three", world.application.restart("spark-three"))
    agent.report(drain_id, DrainState.FLUSHING)
    eventually(lambda: world.drain()["status"]["application"]["runId"] == "spark-three", what="the previous version is seen")
    agent.drained(drain_id)
    world.application.obey_suspend()
    assert scaled_down(world.await_phase("Drained")) == "ApplicationSuspended"


def test_a_change_whose_time_was_removed_by_hand_gives_its_operator_the_time_again(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING)
    world.application.change(driver={"coreLimit": "1000m"})
    agent.drained(drain_id)
    world.await_condition("ScaledDown", "SpecChanged")
    world.patch_status(nextVersion={"seenAt": None})
    eventually(lambda: world.drain()["status"]["nextVersion"].get("seenAt"), what="the time is set again")
    assert world.await_condition("ScaledDown", "SpecChanged")["status"] == "False"


def test_a_drained_driver_that_still_ends_is_waited_for_before_the_next_version(world: World) -> None:
    """The next driver has another name, so nobody had to wait for the pod."""
    world.complete_without_result()
    world.application.hold_pods()
    world.application.change(image="next", driver={"podName": "app-driver-2"})
    world.application.end_pods()
    world.application.start_beside("spark-two", "app-driver-2")
    world.free_result_name()
    assert "app-driver" in world.await_condition("ScaledDown", "WaitingForPods")["message"]
    world.application.hold_pods(held=False)
    assert scaled_down(world.await_phase("Drained")) == "ApplicationResumed"


def changed_for(world: World, seconds: int) -> None:
    """Have the change of the spec be so old."""
    world.patch_drain(spec={"timeoutSeconds": 3000})  # applications are not watched
    eventually(lambda: "nextVersion" in world.drain()["status"], what="the change is noticed")
    world.patch_status(nextVersion={"seenAt": format_time(now() - timedelta(seconds=seconds))})


def scaled_down(body: dict[str, Any]) -> str:
    found = condition(body, "ScaledDown")
    assert found is not None
    return str(found["reason"])


@pytest.mark.parametrize("after", ["Suspend", "Delete"])
def test_a_next_version_that_was_applied_just_before_the_first_look_is_left_alone(world: World, after: str) -> None:
    """As by one `kubectl apply` of drain and application: its own operator has not ended the driver of the version before yet."""
    ended = world.drain_just_after_a_next_version(afterDrain=after)
    assert condition(ended, "Succeeded")["reason"] == "SpecChanged"  # type: ignore[index]
    assert not world.application.suspended


@pytest.mark.parametrize("after", ["Suspend", "Delete"])
def test_a_label_that_was_applied_just_before_the_first_look_makes_no_next_version(own_world: World, after: str) -> None:
    """The driver outlives the time in which its own operator acts, and is restarted past the point of no return."""
    world = own_world
    agent = world.run_application("spark-zero")
    world.application.change(image="first")
    agent.restarted("spark-one", world.application.restart("spark-one"))
    time.sleep(1.1)  # times of the API server are whole seconds
    world.application.label(commit="second")
    drain_id = world.create_drain(afterDrain=after)
    world.operator.start()
    agent.await_notification()
    agent.report(drain_id, DrainState.FLUSHING)
    world.await_phase("Flushing")
    assert world.drain()["status"]["application"]["specDigest"] == "earlier"
    changed_for(world, 61)
    eventually(lambda: world.drain()["status"]["application"]["specDigest"] != "earlier", what="the change has meant nothing")
    agent.restarted("spark-two", world.application.restart("spark-two"))
    agent.report(drain_id, DrainState.REPORTING)
    agent.drained(drain_id)
    if after == "Suspend":
        world.application.obey_suspend()
    assert scaled_down(world.await_phase("Drained")) == ("ApplicationSuspended" if after == "Suspend" else "ApplicationDeleted")


@pytest.mark.parametrize(
    "state", [pytest.param(None, id="unanswered", marks=pytest.mark.soak), pytest.param(DrainState.STOPPING, id="stopping")]
)
def test_a_next_version_after_an_operator_that_was_killed_before_its_first_status(own_world: World, state: DrainState | None) -> None:
    world = own_world
    world.operator.start()
    agent = world.run_application()
    drain_id = world.create_drain()
    agent.await_notification()
    eventually(lambda: world.drain().get("status", {}).get("notification"), what="the first status")
    world.operator.kill()
    body = world.drain()
    body["status"] = {"observedGeneration": -1}  # as if it had not been written
    world.client.request("PUT", f"{DRAINS.format(world.namespace)}/drain/status", body=body)
    if state is not None:
        agent.report(drain_id, state)
    world.application.change(image="next")
    agent.restarted("spark-two", world.application.restart("spark-two"))
    world.operator.start()
    eventually(lambda: all(asked.withdrawn for asked in agent.notifications().values()), what="the request is withdrawn")
    if state is not None:
        agent.report(drain_id, DrainState.WITHDRAWN)
    assert condition(world.await_phase("Failed"), "Succeeded")["reason"] == "SpecChanged"  # type: ignore[index]
    assert not world.application.suspended
