"""A drain from kubectl apply to Drained, as users see it."""

import json

import pytest
from spark_drain_store import DrainState

from tests.operator.conftest import World, condition
from tests.operator.scripted_kubeflow import BackgroundKubeflow
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver

STEPS = [
    (DrainState.ACKNOWLEDGED, "Acknowledged"),
    (DrainState.STOPPING, "Stopping"),
    (DrainState.COMMITTING, "Flushing"),
    (DrainState.FLUSHING, "Flushing"),
    (DrainState.REPORTING, "Reporting"),
]
STORY = ["Acknowledged", "Flushed", "Drained"]


def test_a_drain_from_request_to_scaled_down(world: World) -> None:
    agent = world.run_application()
    uid = world.create_drain()
    notification = agent.await_notification()
    assert (notification.drain_id, notification.run_id, notification.attempt, notification.mode) == (uid, "spark-one", 1, "Drain")
    assert dict(notification.options) == {}
    with BackgroundKubeflow(world.application):
        agent.drain(uid)
        body = world.await_phase("Drained")
    status = body["status"]
    assert {item["type"]: item["status"] for item in status["conditions"]} == {
        "Accepted": "True",
        "Acknowledged": "True",
        "SourcesStopped": "True",
        "Flushed": "True",
        "ExecutorsDrained": "True",
        "ScaledDown": "True",
        "Succeeded": "True",
        "Finished": "True",
        "Reconciling": "False",
        "Stalled": "False",
    }
    assert status["observedGeneration"] == body["metadata"]["generation"]
    assert status["run"]["id"] == "spark-one"
    assert status["run"]["driverPodUID"] == agent.pod_uid
    assert status["progress"] == {
        "queriesTotal": 1,
        "queriesDrained": 1,
        "queries": "1/1",
        "executorsTotal": 2,
        "executorsDrained": 2,
        "executors": "2/2",
        "stateRowsBefore": 7,
        "stateRowsAfter": 0,
    }
    assert status["queries"][0]["flushBatchId"] == 42
    assert status["timings"] == [{"step": "flush", "milliseconds": 1250}]
    assert status["plan"]["afterDrain"] == "Suspend"
    assert status["startTime"] <= status["completionTime"]
    assert world.application.suspended
    assert agent.notifications() == {}
    eventually(lambda: not world.drain()["metadata"].get("finalizers"), what="the finalizer is gone")


def test_the_result_outlives_the_application(world: World) -> None:
    agent = world.run_application()
    uid = world.create_drain()
    agent.await_notification()
    with BackgroundKubeflow(world.application):
        agent.drain(uid)
        body = world.await_phase("Drained")
    world.application.delete()
    result = world.config_map(body["status"]["resultRef"]["name"])
    assert json.loads(result["data"]["end-offsets.json"]) == {"counts": {"KafkaV2[Subscribe[flights]]": '{"flights":{"0":4711}}'}}
    assert json.loads(result["data"]["report.json"])["state"] == "Drained"
    assert [owner["uid"] for owner in result["metadata"]["ownerReferences"]] == [uid]


def test_describe_and_get_tell_the_story(world: World) -> None:
    agent = world.run_application()
    uid = world.create_drain()
    agent.await_notification()
    for state, phase in STEPS:
        agent.report(uid, state)
        world.await_phase(phase)
    with BackgroundKubeflow(world.application):
        agent.drained(uid)
        world.await_phase("Drained")
    row = world.server.run_kubectl("get", "pdr", "drain", "-n", world.namespace).splitlines()
    assert row[0].split() == ["NAME", "APPLICATION", "PHASE", "REASON", "QUERIES", "EXECUTORS", "AGE"]
    assert row[1].split()[:6] == ["drain", "app", "Drained", "Drained", "1/1", "2/2"]
    eventually(lambda: ("Normal", "Drained") in world.events(), what="the last Event")
    assert [("Normal", reason) for reason in STORY] == world.events()
    shown = world.server.run_kubectl("get", "events", "-n", world.namespace, "-o", "jsonpath={.items[*].reason}").split()
    assert [reason for reason in shown if reason in STORY] == STORY
    text = world.server.run_kubectl("describe", "pdr", "drain", "-n", world.namespace)
    assert "1/1 queries and 2/2 executors drained; the application is suspended; end offsets are in ConfigMap drain-result" in text


def test_a_drain_of_a_later_generation_is_found_by_field(world: World) -> None:
    agent = world.run_application()
    world.create_drain()
    agent.await_notification()
    selected = world.server.run_kubectl(
        "get", "pdr", "-n", world.namespace, "-o", "name", "--field-selector", "spec.applicationRef.name=app,status.phase=Pending"
    )
    assert selected.strip() == "pipelinedrain.sparkdrain.io/drain"


def test_suspended_is_believed_only_when_the_pods_are_gone(world: World) -> None:
    """The executors have no owner: else the garbage collector deletes them with their driver, and within 20 s they count as ended."""
    agent = world.run_application(executors=0)
    for number in ("1", "2"):
        world.application.add_executor(number, owned=False)
    uid = world.create_drain()
    agent.await_notification()
    agent.drain(uid)
    world.application.await_suspend()
    world.application.set_state("SUSPENDED")
    waiting = world.await_condition("ScaledDown", "WaitingForPods")
    assert "app-driver" in waiting["message"]
    world.application.end_pods(role="driver")
    eventually(lambda: "exec" in condition(world.drain(), "ScaledDown")["message"], what="it waits for executors too")  # type: ignore[index]
    assert agent.notifications()
    world.application.end_pods()
    world.await_phase("Drained")
    assert agent.notifications() == {}
