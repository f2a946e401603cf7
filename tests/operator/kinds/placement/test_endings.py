"""What else becomes of a placement: refused, taken back, given up, interrupted."""

from datetime import UTC, datetime
from typing import Any

import pytest
from spark_drain_store.placement_messages import PlacementRequest, PlacementResponse, PlacementStatus

from tests.operator.conftest import World, condition
from tests.operator.kinds.placement.conftest import PlacementWorld, placement_agent
from tests.support.apiserver import PLACEMENTS, placement_body
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def reason(body: dict[str, Any]) -> str:
    found = condition(body, "Succeeded")
    assert found is not None
    return str(found["reason"])


def test_what_the_agent_refuses_is_rejected(running: PlacementWorld) -> None:
    uid = running.create()
    running.agent.await_request()
    running.agent.respond(uid, PlacementStatus.BAD_REQUEST, "there is no executor 1 in run spark-one: there are 2, 3")
    body = running.await_phase("Rejected")
    assert reason(body) == "BadRequest"
    assert body["status"]["message"] == "there is no executor 1 in run spark-one: there are 2, 3"
    assert condition(body, "Accepted")["status"] == "False"  # type: ignore[index]
    eventually(lambda: not running.placement()["metadata"].get("finalizers"), what="the finalizer is gone")
    assert running.agent.placements().requests == {}


def test_what_is_not_achieved_has_failed(running: PlacementWorld) -> None:
    uid = running.create()
    running.agent.await_request()
    running.agent.respond(uid, PlacementStatus.FAILED, "no new executor was there within 300 s: executor 1 was left alone")
    body = running.await_phase("Failed")
    assert reason(body) == "NotReplaced"
    eventually(lambda: ("Warning", "Failed") in running.events(), what="a Warning")


def test_an_executor_whose_time_was_over_is_told(running: PlacementWorld) -> None:
    uid = running.create(decommissionAfterSeconds=5)
    running.agent.await_request()
    running.agent.respond(uid, PlacementStatus.FAILED, "executor 1 on node-1 was decommissioned", decommissioned=True)
    assert reason(running.await_phase("Failed")) == "Decommissioned"


@pytest.mark.parametrize(
    ("spec", "told", "message"),
    [
        ({"podName": "nobody"}, "ExecutorNotFound", "there are app-spark-one-exec-1, app-spark-one-exec-2"),
        ({"runId": "spark-zero"}, "StaleRunId", "the application's run is 'spark-one'"),
        (
            {"applicationRef": {"apiVersion": "spark.apache.org/v1", "kind": "SparkApplication", "name": "app"}},
            "UnsupportedApplication",
            "placement write",
        ),
        (
            {"applicationRef": {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "other"}},
            "ApplicationNotFound",
            "there is no SparkApplication 'other'",
        ),
    ],
    ids=["pod", "run", "kind", "application"],
)
def test_what_cannot_be_meant_is_rejected_at_once(running: PlacementWorld, spec: dict[str, Any], told: str, message: str) -> None:
    running.create(**spec)
    body = running.await_phase("Rejected")
    assert reason(body) == told
    assert message in body["status"]["message"]
    assert running.agent.placements().requests == {}


def test_labels_that_cannot_be_any_are_not_passed_on(running: PlacementWorld) -> None:
    for name, label in (("odd", "no label"), ("long", "a" * 900_000)):
        running.create(name, destination={"type": "Selector", "nodeSelector": {label: "x"}})
        body = running.await_phase("Rejected", name)
        assert reason(body) == "BadRequest"
        assert "which is no label's name" in body["status"]["message"]
    assert running.agent.placements().requests == {}


def wait_for_others(running: PlacementWorld) -> str:
    """Bring a placement to where the agent has as many as it gets; returns its uid."""
    present = datetime.now(UTC)
    others = [PlacementRequest(placement_id=f"other-{number}", created_at=present, executor_id="1") for number in range(100)]
    running.agent.channel.requests.write({item.placement_id: item.to_json() for item in others})
    uid = running.create()
    waiting = eventually(lambda: condition(running.placement(), "Accepted"), what="it is looked at")
    assert (waiting["status"], waiting["reason"]) == ("Unknown", "WaitingForOthers")
    assert uid not in running.agent.placements().requests
    return uid


def test_placements_leave_room_for_a_drain(running: PlacementWorld) -> None:
    uid = wait_for_others(running)
    running.agent.channel.requests.write({"other-1": None})
    eventually(lambda: uid in running.agent.placements().requests, what="its request is written")


def test_one_that_waits_for_others_is_of_its_run(own_running: PlacementWorld) -> None:
    operator, application = own_running.world.operator, own_running.world.application
    operator.start()
    wait_for_others(own_running)
    operator.kill()  # so that it does not see the application without a driver
    application.end_pods()
    application.start("spark-two")
    operator.start()
    body = own_running.await_phase("Failed")
    assert reason(body) == "RunEnded"


def test_without_a_driver_there_are_no_executors(world: World) -> None:
    world.application.create()
    placements = PlacementWorld(world, placement_agent(world))
    placements.create()
    body = placements.await_phase("Rejected")
    assert reason(body) == "ApplicationNotRunning"


@pytest.mark.parametrize("how", ["cancel", "delete"])
def test_one_that_is_taken_back_waits_for_the_agent(running: PlacementWorld, how: str) -> None:
    agent = running.agent
    uid = running.create()
    agent.await_request()
    agent.respond(uid, PlacementStatus.IN_PROGRESS, "waiting for executor 3", source_node="node-1", new_executor_id="3")
    running.await_phase("Moving")
    if how == "cancel":
        running.patch(cancel=True)
    else:
        running.delete()
    agent.await_withdrawn()
    assert running.placement()["status"]["phase"] == "Moving"
    agent.respond(uid, PlacementStatus.FAILED, "it was withdrawn: executor 1 was left alone")
    if how == "cancel":
        body = running.await_phase("Cancelled")
        assert (reason(body), body["status"]["message"]) == ("CancelRequested", "it was withdrawn: executor 1 was left alone")
    else:
        eventually(running.is_gone, what="the placement is deleted")
    eventually(lambda: agent.placements().requests == {}, what="the request is removed")


def test_one_that_is_taken_back_too_late_has_succeeded(running: PlacementWorld) -> None:
    uid = running.create()
    running.agent.await_request()
    running.patch(cancel=True)
    running.agent.await_withdrawn()
    running.agent.respond(uid, PlacementStatus.SUCCEEDED, "executor 3 on node-2 has replaced executor 1 on node-1", node="node-2")
    assert running.await_phase("Succeeded")["status"]["withdrawal"]["reason"] == "CancelRequested"


def test_a_silent_agent_ends_in_a_bounded_time(running: PlacementWorld) -> None:
    running.create(acknowledgeTimeoutSeconds=1)
    body = running.await_phase("Failed")
    assert reason(body) == "AgentNotResponding"
    assert "sparkapplication-app-agent-requests" in body["status"]["message"]
    eventually(lambda: running.agent.placements().requests == {}, what="the request is removed")


def test_a_withdrawal_that_nobody_answers_ends_in_a_bounded_time(running: PlacementWorld) -> None:
    uid = running.create(acknowledgeTimeoutSeconds=2)
    running.agent.await_request()
    running.agent.respond(uid, PlacementStatus.IN_PROGRESS, "waiting for executor 3", source_node="node-1")
    running.await_phase("Moving")
    running.delete()
    eventually(running.is_gone, what="the placement is deleted")
    assert running.agent.placements().requests == {}


@pytest.mark.parametrize("malformed", ["{", '{"uuid":"another"}', "[]", '{"version":99}'])
def test_a_response_that_cannot_be_read_wedges_nothing(running: PlacementWorld, malformed: str) -> None:
    uid = running.create(acknowledgeTimeoutSeconds=2)
    running.agent.await_request()
    running.agent.channel.reports.write({uid: malformed})
    body = running.await_phase("Failed")
    assert "Its response cannot be read" in body["status"]["message"]


def test_hostile_texts_are_cut(running: PlacementWorld) -> None:
    uid = running.create()
    running.agent.await_request()
    long = "x" * 20_000
    running.agent.respond(uid, PlacementStatus.SUCCEEDED, long, source_node=long, node=long, new_executor_id=long)
    status = running.await_phase("Succeeded")["status"]
    assert len(status["message"]) == 4096
    assert (len(status["executor"]["nodeName"]), len(status["replacement"]["id"])) == (253, 63)


@pytest.mark.parametrize("how", ["another run", "no driver", "no application"])
def test_a_run_that_ends_ends_its_placements(running: PlacementWorld, how: str) -> None:
    uid = running.create()
    running.agent.await_request()
    running.agent.respond(uid, PlacementStatus.IN_PROGRESS, "waiting for executor 3", source_node="node-1")
    running.await_phase("Moving")
    application = running.world.application
    if how == "no application":
        application.delete()
        running.world.delete_config_maps()
    else:
        application.end_pods()
        if how == "another run":
            application.start("spark-two")
    body = running.await_phase("Failed")
    assert reason(body) == "RunEnded"
    assert "run spark-one has ended" in body["status"]["message"]


@pytest.mark.parametrize("wish", ["", "cancel"])
def test_a_run_that_ends_while_a_batch_is_waited_for_has_replaced_the_executor(running: PlacementWorld, wish: str) -> None:
    uid = running.create()
    running.agent.await_request()
    message = "executor 3 on node-2 has replaced executor 1 on node-1 after 5.0 s; a batch after that is waited for"
    running.agent.respond(uid, PlacementStatus.IN_PROGRESS, message, replaced=True)
    running.await_phase("Moving")
    if wish:
        running.patch(cancel=True)
    running.world.application.end_pods()
    assert message in running.await_phase("Succeeded")["status"]["message"]


def test_the_next_run_says_what_it_knows(running: PlacementWorld) -> None:
    uid = running.create()
    running.agent.await_request()
    message = "run spark-one was interrupted while it replaced the executor"
    placement_agent(running.world, "spark-two").respond(uid, PlacementStatus.FAILED, message)
    assert running.await_phase("Failed")["status"]["message"] == message


def test_a_request_that_somebody_removes_ends_the_placement(running: PlacementWorld) -> None:
    uid = running.create()
    running.agent.await_request()
    running.agent.respond(uid, PlacementStatus.ACCEPTED, "it waits for its turn")
    running.await_phase("Queued")
    running.agent.channel.requests.write({uid: None})
    body = running.await_phase("Cancelled")
    assert reason(body) == "RequestRemoved"


def test_answers_without_a_request_make_room(running: PlacementWorld) -> None:
    channel = running.agent.channel
    first = running.create("first")
    running.agent.await_request()
    stray = PlacementResponse(placement_id="stray", status=PlacementStatus.FAILED, updated_at=datetime.now(UTC))
    channel.reports.write({"stray": stray.to_json()})
    running.agent.respond(first, PlacementStatus.SUCCEEDED, "done")
    running.await_phase("Succeeded", "first")
    assert "stray" in running.agent.placements().responses
    running.create("second")
    running.agent.await_request()
    eventually(lambda: "stray" not in running.agent.placements().responses, what="the stray answer is removed")


def test_a_copy_of_another_placement_does_nothing(running: PlacementWorld) -> None:
    body = placement_body("copy", executorId="1")
    body["metadata"]["annotations"] = {"sparkdrain.io/uid": "of-another"}
    running.client.request("POST", PLACEMENTS.format(running.world.namespace), body=body)
    assert reason(running.await_phase("Rejected", "copy")) == "Restored"


@pytest.mark.parametrize("when", ["requested", "answered"])
def test_an_operator_that_is_killed_goes_on(own_running: PlacementWorld, when: str) -> None:
    operator, agent = own_running.world.operator, own_running.agent
    operator.start()
    uid = own_running.create()
    agent.await_request()
    if when == "requested":
        operator.kill()
    agent.respond(uid, PlacementStatus.SUCCEEDED, "executor 3 on node-2 has replaced executor 1 on node-1", node="node-2")
    if when == "answered":
        operator.kill()
    operator.start()
    own_running.await_phase("Succeeded")
    eventually(lambda: not own_running.placement()["metadata"].get("finalizers"), what="the finalizer is gone")
    left = agent.placements()
    assert (left.requests, left.responses) == ({}, {})
