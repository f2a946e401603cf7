"""Drains that end before, or without, touching the application."""

import time

import pytest
from spark_drain_store import DrainState
from spark_drain_store.channel import config_map_names

from tests.operator.conftest import World, condition
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def test_a_second_drain_of_the_same_application_is_rejected_by_name(world: World) -> None:
    agent = world.run_application()
    world.create_drain("first")
    agent.await_notification()
    world.create_drain("second")
    second = world.await_phase("Rejected", "second")
    assert condition(second, "Succeeded")["reason"] == "DrainAlreadyActive"  # type: ignore[index]
    assert "PipelineDrain 'first'" in second["status"]["message"]
    assert len(agent.notifications()) == 1
    eventually(lambda: ("Warning", "Rejected") in world.events("second"), what="the Event")


def test_a_retry_after_the_end_is_accepted(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain("first")
    agent.await_notification()
    agent.report(drain_id, DrainState.REJECTED, reason="StateWouldBeLost", message="dropDuplicates of query counts forgets its keys")
    first = world.await_phase("Rejected", "first")
    assert condition(first, "Accepted")["reason"] == "StateWouldBeLost"  # type: ignore[index]
    assert first["status"]["message"] == "dropDuplicates of query counts forgets its keys"
    second = world.create_drain("second", stateLossPolicy="Accept")
    notification = agent.await_notification()
    assert notification.drain_id == second
    assert dict(notification.options) == {"stateLossPolicy": "Accept"}
    reports = world.config_map(config_map_names("app")[1]).get("data") or {}
    assert len(reports) <= 1
    assert world.untouched


def test_a_missing_application_is_waited_for(world: World) -> None:
    world.create_drain()
    waiting = world.await_condition("Accepted", "ApplicationNotFound")
    assert waiting["status"] == "Unknown"
    assert "there is no SparkApplication 'app'" in waiting["message"]
    world.run_application().await_notification()


@pytest.mark.parametrize("state", ["COMPLETED", "SUSPENDED"])
def test_an_application_that_does_not_run_is_waited_for(world: World, state: str) -> None:
    world.application.create(suspend=state == "SUSPENDED").set_state(state)
    world.create_drain(ifNotRunning="Wait")
    waiting = world.await_condition("Accepted", "WaitingForDriver")
    assert f"(state {state})" in waiting["message"]
    world.application.resume()
    world.agent("spark-one", world.application.start()).await_notification()


@pytest.mark.parametrize(
    ("state", "policy", "phase", "reason"),
    [
        ("", "Succeed", "NothingToDrain", "NothingToDrain"),
        ("", "Reject", "Rejected", "ApplicationNotFound"),
        ("SUSPENDED", "Succeed", "NothingToDrain", "NothingToDrain"),
        ("SUSPENDED", "Reject", "Rejected", "ApplicationNotRunning"),
        ("COMPLETED", "Succeed", "NothingToDrain", "NothingToDrain"),
        ("COMPLETED", "Reject", "Rejected", "ApplicationNotRunning"),
    ],
)
def test_an_application_that_does_not_run_ends_the_drain_as_the_policy_says(
    world: World, state: str, policy: str, phase: str, reason: str
) -> None:
    if state:
        world.application.create(suspend=state == "SUSPENDED").set_state(state)
    world.create_drain(ifNotRunning=policy)
    body = world.await_phase(phase)
    assert condition(body, "Succeeded")["reason"] == reason  # type: ignore[index]
    assert condition(body, "Finished")["status"] == "True"  # type: ignore[index]
    assert state in body["status"]["message"]


def test_an_interrupted_drain_whose_report_cannot_be_read_is_not_nothing_to_drain(world: World) -> None:
    agent, first = world.drain_at(DrainState.FLUSHING)
    agent.channel.reports.write({first: '{"version": 2}'})
    world.application.set_state("COMPLETED")
    world.application.end_pods()
    world.await_phase("Failed")
    world.create_drain("second", ifNotRunning="Succeed")
    message = world.await_phase("Rejected", "second")["status"]["message"]
    assert first in message
    assert "its report cannot be read" in message


def test_a_drain_that_was_interrupted_half_way_is_not_taken_for_nothing_to_drain(world: World) -> None:
    """The next version would be started in place of the one that alone can complete it."""
    agent = world.run_application()
    first = world.create_drain("first")
    agent.await_notification()
    agent.report(first, DrainState.FLUSHING)
    world.await_phase("Flushing", "first")
    world.application.end_pods()
    world.application.set_state("FAILED")
    assert condition(world.await_phase("Failed", "first"), "Succeeded")["reason"] == "ApplicationEnded"  # type: ignore[index]

    world.create_drain("second", ifNotRunning="Succeed")
    rejected = world.await_phase("Rejected", "second")
    assert condition(rejected, "Succeeded")["reason"] == "DrainInterrupted"  # type: ignore[index]
    assert all(part in rejected["status"]["message"] for part in (first, "start the same version again", config_map_names("app")[1]))

    agent.channel.reports.write({first: None})
    world.create_drain("third", ifNotRunning="Succeed")
    world.await_phase("NothingToDrain", "third")


def test_an_interrupted_drain_is_not_forgotten_with_the_next_request(world: World) -> None:
    world.drain_at(DrainState.FLUSHING)
    world.application.set_state("FAILED")
    world.application.end_pods()
    world.await_phase("Failed")
    world.application.submit("spark-two")
    world.create_drain("second", ifNotRunning="Succeed")
    eventually(lambda: world.drain("second").get("status", {}).get("notification"), "it is asked for")
    world.application.set_state("FAILED")  # its driver has ended before it had completed anything
    world.application.end_pods()
    rejected = world.await_phase("Rejected", "second")
    assert condition(rejected, "Succeeded")["reason"] == "DrainInterrupted"  # type: ignore[index]


def test_deletion_of_the_application_is_refused_where_the_operator_may_not(own_world: World) -> None:
    own_world.operator._command.remove("--allow-delete")
    own_world.operator.start()
    agent = own_world.run_application()
    own_world.create_drain(afterDrain="Delete")
    body = own_world.await_phase("Rejected")
    assert condition(body, "Succeeded")["reason"] == "DeleteNotAllowed"  # type: ignore[index]
    assert "--allow-delete" in body["status"]["message"]
    assert agent.notifications() == {}
    assert own_world.untouched


def test_an_absent_agent_fails_the_drain_and_leaves_the_application(world: World) -> None:
    agent = world.run_application()
    world.create_drain(acknowledgeTimeoutSeconds=2)
    body = world.await_phase("Failed")
    succeeded = condition(body, "Succeeded")
    assert succeeded is not None
    assert (succeeded["status"], succeeded["reason"]) == ("False", "AgentNotResponding")
    assert "no agent responded within 2 s" in body["status"]["message"]
    assert world.untouched
    assert agent.notifications() == {}
    eventually(lambda: ("Warning", "Failed") in world.events(), what="the Event")


def test_a_stale_run_id_is_rejected(world: World) -> None:
    world.run_application("spark-now")
    world.create_drain(runId="spark-earlier")
    body = world.await_phase("Rejected")
    assert condition(body, "Succeeded")["reason"] == "StaleRunId"  # type: ignore[index]
    assert "'spark-now'" in body["status"]["message"]
    assert world.untouched


def test_an_unsupported_kind_is_rejected_by_name(world: World) -> None:
    world.create_drain(applicationRef={"apiVersion": "spark.apache.org/v1", "kind": "SparkApplication", "name": "app"})
    body = world.await_phase("Rejected")
    assert condition(body, "Succeeded")["reason"] == "UnsupportedApplication"  # type: ignore[index]
    assert "--metadata-store configmap:NAMESPACE/app drain write" in body["status"]["message"]
    assert "sparkoperator.k8s.io/v1beta2/SparkApplication" in body["status"]["message"]


@pytest.mark.parametrize(("stage", "seconds"), [("no application", 1), ("driver pending", 2), ("not answered", 2), ("not approved", 4)])
def test_a_drain_that_has_not_begun_expires(world: World, stage: str, seconds: int) -> None:
    """What has been asked of the agent is taken back; an agent that has planned already says first that nothing is touched."""
    agent = None
    if stage == "driver pending":
        world.application.create().submit("spark-one")
    elif stage != "no application":
        agent = world.run_application()
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
    drain_id = world.create_drain(expirationTime=soon, acknowledgeTimeoutSeconds=600, execution="AfterApproval")
    if agent is not None and stage == "not approved":
        agent.await_notification()
        agent.report(drain_id, DrainState.ACKNOWLEDGED, reason="AwaitingApproval")
        agent.await_withdrawn()
        agent.report(drain_id, DrainState.WITHDRAWN, withdrawal="Withdrawn")
    body = world.await_phase("Expired")
    assert condition(body, "Succeeded")["reason"] == "Expired"  # type: ignore[index]
    assert soon in body["status"]["message"]
    assert body["status"]["message"].endswith(": it waited for spec.approved") == (stage == "not approved")
    if agent is not None:
        assert agent.notifications() == {}
        assert world.untouched


def test_an_expiration_counts_from_the_creation(world: World) -> None:
    world.application.create().submit("spark-one")
    world.create_drain(expirationSeconds=2, ifNotRunning="Succeed")
    body = world.await_phase("Expired")
    assert all(part in body["status"]["message"] for part in ("spec.expirationSeconds", "waiting for the agent"))


@pytest.mark.parametrize(
    ("policy", "state", "phase", "reason"),
    [
        ("Succeed", "FAILED", "NothingToDrain", "NothingToDrain"),
        ("Succeed", "COMPLETED", "NothingToDrain", "NothingToDrain"),
        ("Succeed", "SUSPENDED", "NothingToDrain", "NothingToDrain"),
        ("Reject", "FAILED", "Rejected", "ApplicationNotRunning"),
    ],
)
def test_an_application_that_ends_before_its_agent_has_answered(world: World, policy: str, state: str, phase: str, reason: str) -> None:
    """What was meant for it must not drain the version that is started next."""
    agent = world.run_application()
    world.create_drain(ifNotRunning=policy)
    agent.await_notification()
    if state == "SUSPENDED":
        world.application.suspend()
    else:
        world.application.end_pods()
        world.application.set_state(state)
    body = world.await_phase(phase)
    assert condition(body, "Succeeded")["reason"] == reason  # type: ignore[index]
    assert agent.notifications() == {}


def test_a_plan_ends_with_the_plan(world: World) -> None:
    agent = world.run_application()
    drain_id = world.create_drain(execution="PlanOnly")
    assert dict(agent.await_notification().options) == {"execution": "PlanOnly"}
    agent.report(drain_id, DrainState.ACKNOWLEDGED, reason="Planned", message="1 query, 7 rows in state")
    body = world.await_phase("Planned")
    assert body["status"]["queries"][0]["operators"] == [{"name": "stateStoreSave", "disposition": "flushed", "rowsBefore": 7}]
    agent.await_no_notification()
    assert world.untouched


def test_a_result_name_of_somebody_else_is_not_overwritten(world: World) -> None:
    world.complete_without_result()
    assert world.config_map("drain-result")["data"] == {"mine": "yes"}
    assert not world.application.suspended
    world.free_result_name()
    eventually(lambda: world.application.suspended, what="it goes on")


def test_where_no_result_could_be_kept_the_end_says_so(own_world: World) -> None:
    world = own_world
    world.operator.start()
    world.complete_without_result()
    world.operator.kill()  # while it is away, everything goes
    world.application.delete()
    world.delete_config_maps()
    world.application.end_pods()
    world.operator.start()
    message = world.await_phase("Drained")["status"]["message"]
    assert "the application is deleted; end offsets were not kept" in message
