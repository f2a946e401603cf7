"""What can happen in the middle of a drain: withdrawals, deadlines, restarts, nonsense."""

import time
from datetime import timedelta

import pytest
from spark_drain_store import DrainState, ExecutorException
from spark_drain_store.channel import config_map_names

from tests.operator.conftest import World, condition
from tests.operator.scripted_kubeflow import BackgroundKubeflow
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def reason(body: dict[str, object]) -> str:
    found = condition(body, "Succeeded")
    assert found is not None
    return str(found["reason"])


def test_a_drain_may_be_requested_before_the_driver_starts(world: World) -> None:
    world.application.create()
    world.create_drain()
    world.await_condition("Accepted", "WaitingForDriver")
    agent = world.agent("spark-one", world.application.start())
    drain_id = agent.await_notification().drain_id
    with BackgroundKubeflow(world.application):
        agent.drain(drain_id)
        world.await_phase("Drained")


def test_a_pending_driver_is_asked_before_it_runs(world: World) -> None:
    uid = world.application.create().submit("spark-one")
    world.create_drain(acknowledgeTimeoutSeconds=2)
    agent = world.agent("spark-one", uid)
    agent.await_notification()
    time.sleep(3)  # longer than the agent may take once its driver runs
    assert world.drain()["status"]["phase"] == "Pending"
    world.application.run_pod("app-driver")
    world.await_phase("Failed")


def test_an_unanswered_request_moves_to_the_next_run(world: World) -> None:
    first = world.run_application("spark-one")
    drain_id = world.create_drain()
    assert first.await_notification().attempt == 1
    uid = world.application.restart("spark-two")
    second = world.agent("spark-two", uid)
    notification = second.await_notification()
    assert (notification.drain_id, notification.run_id, notification.attempt) == (drain_id, "spark-two", 2)
    second.report(drain_id, DrainState.ACKNOWLEDGED)
    assert world.await_phase("Acknowledged")["status"]["run"] == {"id": "spark-two", "driverPodName": "app-driver", "driverPodUID": uid}


def test_a_pinned_run_that_ends_unanswered_is_stale(world: World) -> None:
    agent = world.run_application("spark-one")
    world.create_drain(runId="spark-one")
    agent.await_notification()
    world.application.restart("spark-two")
    assert reason(world.await_phase("Rejected")) == "StaleRunId"
    assert not world.application.suspended


def test_a_driver_that_restarts_mid_drain_is_followed(world: World) -> None:
    agent = world.run_application("spark-one")
    drain_id = world.create_drain()
    agent.await_notification()
    agent.report(drain_id, DrainState.FLUSHING)
    world.await_phase("Flushing")
    uid = world.application.restart("spark-two")
    assert agent.notifications()[drain_id].run_id == "spark-one"
    agent.restarted("spark-two", uid)
    with BackgroundKubeflow(world.application):
        agent.drain(drain_id)
        body = world.await_phase("Drained")
    assert body["status"]["run"]["driverPodUID"] == uid
    assert "spark-one, spark-two" in condition(body, "Acknowledged")["message"]  # type: ignore[index]


def test_a_final_report_of_an_earlier_driver_scales_nothing_down(world: World) -> None:
    agent = world.run_application("spark-one")
    drain_id = world.create_drain()
    agent.await_notification()
    agent.report(drain_id, DrainState.REPORTING)
    world.await_phase("Reporting")
    uid = world.application.restart("spark-two")
    agent.drained(drain_id)
    world.await_condition("ExecutorsDrained", "DriverUnconfirmed")
    assert not world.application.suspended
    eventually(lambda: ("Warning", "DriverUnconfirmed") in world.events(), what="the Event")
    agent.restarted("spark-two", uid)
    agent.drained(drain_id)
    world.application.await_suspend()


def test_a_running_executor_that_nobody_reported_holds_the_scale_down(world: World) -> None:
    agent = world.run_application(executors=3)
    drain_id = world.create_drain()
    agent.await_notification()
    agent.report(drain_id, DrainState.REPORTING)
    agent.drained(drain_id, executors="1,3", executors_expected=3)
    held = world.await_condition("ExecutorsDrained", "ExecutorsUnaccounted")
    assert held["message"].endswith(": 2")
    assert not world.application.suspended
    agent.drained(drain_id, executors="1,3", executor_exceptions=(ExecutorException(id="2", state="Idle"),))
    world.application.await_suspend()


def test_an_executor_that_is_never_scheduled_is_named_and_not_waited_for(world: World) -> None:
    """Its driver is deleted by force, so nobody removes the pending pod: the drain ends all the same."""
    agent = world.run_application(executors=1)
    world.application.add_executor("2", running=False)
    world.application.add_executor("3")
    drain_id = world.create_drain()
    agent.await_notification()
    agent.drain(drain_id, executors="1,3")
    drained = world.await_condition("ExecutorsDrained", "Completed")
    assert drained["message"].endswith("never started, so idle: 2")
    world.application.await_suspend()
    world.application.set_state("SUSPENDED")
    world.application.end_pods(role="driver")
    for number in (1, 3):
        world.application.end_pod(f"app-spark-one-exec-{number}")
    body = world.await_phase("Drained")
    assert condition(body, "ScaledDown")["reason"] == "ApplicationSuspended"  # type: ignore[index]
    agent.await_no_notification()


def test_cancel_before_the_point_of_no_return(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.STOPPING)
    world.patch_drain(spec={"cancel": True})
    assert agent.await_withdrawn().drain_id == drain_id
    assert world.drain()["status"]["phase"] == "Stopping"
    agent.report(drain_id, DrainState.WITHDRAWN, withdrawal="Withdrawn")
    assert reason(world.await_phase("Cancelled")) == "CancelRequested"
    agent.await_no_notification()
    assert not world.application.suspended


def test_cancel_after_the_point_of_no_return_comes_too_late(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING)
    world.patch_drain(spec={"cancel": True})
    agent.await_withdrawn()
    agent.report(drain_id, DrainState.FLUSHING, withdrawal="TooLate")
    eventually(lambda: ("Warning", "WithdrawalTooLate") in world.events(), what="the Event")
    with BackgroundKubeflow(world.application):
        agent.drain(drain_id, withdrawal="TooLate")
        assert reason(world.await_phase("Drained")) == "Drained"


def test_cancel_without_an_answer_ends_at_once_when_nobody_has_acknowledged(world: World) -> None:
    agent = world.run_application()
    world.create_drain()
    agent.await_notification()
    world.patch_drain(spec={"cancel": True})
    world.await_phase("Cancelled")
    agent.await_no_notification()


def test_cancel_while_an_application_is_waited_for(world: World) -> None:
    world.create_drain()
    world.await_condition("Accepted", "ApplicationNotFound")
    world.patch_drain(spec={"cancel": True})
    assert reason(world.await_phase("Cancelled")) == "CancelRequested"


def test_cancel_instead_of_approval(world: World) -> None:
    agent, drain_id = world.awaiting_approval()
    world.patch_drain(spec={"cancel": True})
    agent.await_withdrawn()
    agent.report(drain_id, DrainState.WITHDRAWN, withdrawal="Withdrawn")
    assert reason(world.await_phase("Cancelled")) == "CancelRequested"
    assert not world.application.suspended


def test_cancel_ends_when_no_container_of_the_run_is_left(world: World) -> None:
    agent, _drain_id = world.drain_at(DrainState.STOPPING)
    world.patch_drain(spec={"cancel": True})
    agent.await_withdrawn()
    world.application.end_pods()
    world.await_phase("Cancelled")


def test_deletion_is_a_withdrawal_first(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.ACKNOWLEDGED)
    world.delete_drain()
    agent.await_withdrawn()
    assert not world.drain_is_gone()
    agent.report(drain_id, DrainState.WITHDRAWN, withdrawal="Withdrawn")
    eventually(world.drain_is_gone, what="the PipelineDrain is gone")
    assert agent.notifications() == {}


def test_deletion_past_the_point_of_no_return_waits_for_the_end(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.FLUSHING)
    world.delete_drain()
    agent.await_withdrawn()
    with BackgroundKubeflow(world.application):
        agent.drain(drain_id, withdrawal="TooLate")
        eventually(world.drain_is_gone, what="the PipelineDrain is gone")
    assert world.application.suspended


def test_a_forced_deletion_does_not_wait(world: World) -> None:
    agent, _drain_id = world.drain_at(DrainState.FLUSHING)
    world.patch_drain(metadata={"annotations": {"sparkdrain.io/force-delete": "true"}})
    world.delete_drain()
    eventually(world.drain_is_gone, what="the PipelineDrain is gone")
    assert agent.notifications() == {}


def test_the_deadline_is_told_to_the_agent_and_can_be_moved(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(timeoutSeconds=600)
    agent.await_notification()
    agent.report(drain_id, DrainState.ACKNOWLEDGED)
    first = eventually(lambda: agent.notifications()[drain_id].deadline, what="a deadline")
    eventually(lambda: world.drain()["status"].get("startTime"), what="the time it counts from is stored")
    world.patch_drain(spec={"timeoutSeconds": 900})
    eventually(lambda: agent.notifications()[drain_id].deadline == first + timedelta(seconds=300), what="the deadline has moved")


@pytest.mark.parametrize(("policy", "phase"), [("Fail", "TimedOut"), ("ForceStop", "ForceStopped")])
def test_an_agent_that_gave_up_at_its_deadline(world: World, policy: str, phase: str) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(onTimeout=policy, timeoutSeconds=8)
    agent.await_notification()
    agent.report(drain_id, DrainState.STOPPING)
    world.await_phase("Stopping")
    agent.report(drain_id, DrainState.FAILED, reason="DeadlineExceeded", message="undone: a batch ran longer than the deadline")
    if policy == "ForceStop":
        world.application.obey_suspend()
    body = world.await_phase(phase)
    assert reason(body) == "DeadlineExceeded"
    assert "a batch ran longer" in body["status"]["message"]
    assert world.application.suspended == (policy == "ForceStop")
    agent.await_no_notification()


@pytest.mark.parametrize("how", ["cancel", "delete"])
def test_what_was_cancelled_before_the_deadline_is_not_stopped_by_force(world: World, how: str) -> None:
    """The agent answers after it, as one does that comes up late."""
    agent, drain_id = world.drain_at(DrainState.STOPPING, timeoutSeconds=6, onTimeout="ForceStop")
    if how == "cancel":
        world.patch_drain(spec={"cancel": True})
    else:
        world.delete_drain()
    agent.await_withdrawn()
    time.sleep(7)
    agent.report(drain_id, DrainState.FAILED, reason="DeadlineExceeded", message="the queries run on", withdrawal="Withdrawn")
    if how == "cancel":
        assert reason(world.await_phase("Cancelled")) == "CancelRequested"
    else:
        eventually(world.drain_is_gone, what="the PipelineDrain is gone")
    assert world.untouched


def test_a_plan_has_its_time_too(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(execution="PlanOnly", timeoutSeconds=1)
    agent.await_notification()
    agent.report(drain_id, DrainState.ACKNOWLEDGED)
    agent.await_withdrawn()
    agent.report(drain_id, DrainState.WITHDRAWN, withdrawal="Withdrawn")
    assert reason(world.await_phase("TimedOut")) == "DeadlineExceeded"
    assert not world.application.suspended


def test_the_deadline_after_the_point_of_no_return_leaves_the_rest_to_the_agent(world: World) -> None:
    """Nobody is waited for any more; the removed notification lets the driver go once it has flushed."""
    agent, drain_id = world.drain_at(DrainState.FLUSHING, timeoutSeconds=600)
    world.patch_drain(spec={"timeoutSeconds": 1})
    body = world.await_phase("TimedOut")
    assert reason(body) == "DeadlineExceeded"
    assert "the agent was at Flushing" in body["status"]["message"]
    agent.await_no_notification()
    agent.drained(drain_id)
    assert not world.application.suspended


def test_the_deadline_before_the_point_of_no_return(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(timeoutSeconds=1)
    agent.await_notification()
    agent.report(drain_id, DrainState.STOPPING)
    agent.await_withdrawn()
    assert world.drain()["status"]["phase"] == "Stopping"
    agent.report(drain_id, DrainState.FAILED, reason="DeadlineExceeded", message="undone: a batch ran longer than the deadline")
    assert reason(world.await_phase("TimedOut")) == "DeadlineExceeded"
    assert not world.application.suspended


def test_a_forced_stop_suspends_and_does_not_say_drained(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(timeoutSeconds=1, onTimeout="ForceStop")
    agent.await_notification()
    agent.report(drain_id, DrainState.STALLED, message="query counts, batch 42: disk full")
    with BackgroundKubeflow(world.application):
        body = world.await_phase("ForceStopped")
    assert condition(body, "Succeeded")["status"] == "False"  # type: ignore[index]
    assert "disk full" in body["status"]["message"]


@pytest.mark.parametrize(
    "started", [pytest.param(True, id="it runs"), pytest.param(False, id="it has no driver yet", marks=pytest.mark.soak)]
)
def test_a_forced_stop_leaves_the_next_version_alone(own_world: World, started: bool) -> None:
    """The operator stands still while the pods end and somebody starts the next version."""
    world = own_world
    world.operator.start()
    world.drain_at(DrainState.STOPPING, timeoutSeconds=3, onTimeout="ForceStop")
    world.application.await_suspend()
    eventually(lambda: "scaleDown" in world.drain()["status"], what="the request to scale down is remembered")
    world.operator.kill()
    world.application.obey_suspend()
    world.application.change(image="next", suspend=False)
    if started:
        world.application.start("spark-two")
    else:
        world.application.set_state("RESUMING")
    world.operator.start()
    body = world.await_phase("ForceStopped")
    assert "somebody has resumed or changed the application since" in body["status"]["message"]
    assert not world.application.suspended


@pytest.mark.parametrize(("of_agent", "shown"), [("", "FlushStalled"), ("StateExportFailed", "StateExportFailed")])
def test_a_stalled_flush_is_shown_and_goes_on(world: World, of_agent: str, shown: str) -> None:
    agent = world.run_application()
    drain_id = world.create_drain()
    agent.await_notification()
    agent.report(drain_id, DrainState.STALLED, reason=of_agent, message="query counts, batch 42: disk full")
    stalled = world.await_condition("Stalled", shown)
    assert "disk full" in stalled["message"]
    eventually(lambda: [reason for type_, reason in world.events() if type_ == "Warning"] == [shown], what="one Event")
    agent.report(drain_id, DrainState.FLUSHING)
    world.await_condition("Stalled", "NotStalled")


def test_a_malformed_report_is_shown_and_survived(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.ACKNOWLEDGED)
    agent.channel.reports.write({drain_id: '{"version": 1, "uuid": 7}', "somebody-else": "nonsense"})
    stalled = world.await_condition("Stalled", "MalformedReport")
    assert "field 'uuid'" in stalled["message"]
    with BackgroundKubeflow(world.application):
        agent.drain(drain_id)
        world.await_phase("Drained")


def test_a_vanished_application_abandons_the_drain(world: World) -> None:
    _agent, _drain_id = world.drain_at(DrainState.STOPPING)
    world.application.delete()
    world.application.end_pods()
    assert reason(world.await_phase("Abandoned")) == "ApplicationGone"


def test_approval_starts_the_clock(world: World) -> None:
    agent, drain_id = world.awaiting_approval()
    assert "startTime" not in world.drain()["status"]
    assert not agent.notifications()[drain_id].approved
    world.patch_drain(spec={"approved": True})
    eventually(lambda: agent.notifications()[drain_id].approved and agent.notifications()[drain_id].deadline, what="the agent is told")
    with BackgroundKubeflow(world.application):
        agent.drain(drain_id)
        world.await_phase("Drained")


def test_keep_leaves_the_application_running(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(afterDrain="Keep", queries=["counts"])
    assert dict(agent.await_notification().options) == {"afterDrain": "Keep", "queries": "counts"}
    agent.drain(drain_id)
    body = world.await_phase("Drained")
    assert condition(body, "ScaledDown")["reason"] == "NotRequested"  # type: ignore[index]
    agent.await_no_notification()
    assert not world.application.suspended


def test_delete_removes_the_application_and_keeps_the_result(world: World) -> None:
    world.drained(afterDrain="Delete")
    body = world.await_phase("Drained")
    assert condition(body, "ScaledDown")["reason"] == "ApplicationDeleted"  # type: ignore[index]
    assert world.config_map("drain-result")["data"]["report.json"]


def test_an_application_that_does_not_go_stalls_its_drain(world: World) -> None:
    agent = world.run_application()
    world.application.set_finalizers("example.com/held")
    drain_id = world.create_drain(afterDrain="Delete")
    agent.await_notification()
    agent.drain(drain_id)
    world.await_condition("ScaledDown", "ScaleDownRequested")
    world.application.end_pods()
    world.patch_status(scaleDown={"requestedAt": "2026-01-01T00:00:00Z"})
    assert "a finalizer holds the application" in world.await_condition("Stalled", "ScaleDownIncomplete")["message"]
    world.application.set_finalizers()
    world.await_phase("Drained")


def test_a_finished_drain_lives_as_long_as_its_ttl(world: World) -> None:
    world.create_drain(ifNotRunning="Succeed", ttlSecondsAfterFinished=2)
    world.await_phase("NothingToDrain")
    eventually(world.drain_is_gone, what="the PipelineDrain is deleted")


@pytest.mark.parametrize("started", [False, True], ids=["at once", "a driver runs"])
def test_a_suspend_that_somebody_reverts_is_asked_for_again(world: World, started: bool) -> None:
    world.drained()
    world.application.await_suspend()
    if started:
        world.application.end_pods()
    world.application.change(suspend=False, timeToLiveSeconds=60)
    if started:
        world.application.start("spark-two")
    world.application.obey_suspend()
    body = world.await_phase("Drained")
    assert condition(body, "ScaledDown")["reason"] == "ApplicationSuspended"  # type: ignore[index]


def test_a_drained_driver_that_is_lost_before_it_is_looked_at_is_drained(world: World) -> None:
    agent, drain_id = world.drain_at(DrainState.REPORTING)
    world.application.set_state("FAILING")
    world.application.end_pods()
    agent.drained(drain_id)
    world.await_condition("ExecutorsDrained", "DriverUnconfirmed")
    world.application.set_state("FAILED")
    world.application.await_suspend()
    world.await_phase("Drained")


@pytest.mark.parametrize("cancel", [False, True])
@pytest.mark.parametrize("state", [DrainState.WITHDRAWN, DrainState.FAILED, DrainState.STOPPING])
def test_what_the_agent_says_after_the_end_changes_nothing(world: World, state: DrainState, cancel: bool) -> None:
    agent, drain_id = world.drained()
    world.application.await_suspend()
    world.await_condition("ScaledDown", "WaitingForPods")
    agent.report(drain_id, state)
    if cancel:
        world.patch_drain(spec={"cancel": True})
        eventually(lambda: "withdrawal" in world.drain()["status"], what="it is noted")
    world.application.obey_suspend()
    body = world.await_phase("Drained")
    assert condition(body, "SourcesStopped")["status"] == "True"  # type: ignore[index]


@pytest.mark.parametrize("left", ["nothing", "reports", "both"])
def test_the_config_maps_go_with_the_application(world: World, left: str) -> None:
    """An agent that outlived its application has made those for reports, and a command those for requests."""
    agent = world.run_application()
    if left != "nothing":
        agent.report("earlier", DrainState.FAILED)
        assert "ownerReferences" not in world.config_map(config_map_names("app")[1])["metadata"]
    if left == "both":
        agent.channel.requests.write({"earlier": "removed"})
        agent.channel.requests.write({"earlier": None})
    world.create_drain()
    agent.await_notification()
    owner = world.application.body()["metadata"]["uid"]
    for name in config_map_names("app"):
        assert [item["uid"] for item in world.config_map(name)["metadata"]["ownerReferences"]] == [owner]
