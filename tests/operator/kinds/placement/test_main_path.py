"""A placement from kubectl apply to its end, as users see it (SEP-22)."""

from datetime import timedelta

import pytest
from spark_drain_store.codec import parse_time
from spark_drain_store.placement_messages import PlacementStatus

from tests.operator.conftest import condition
from tests.operator.kinds.placement.conftest import PlacementWorld
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


def test_an_executor_is_moved(running: PlacementWorld) -> None:
    agent = running.agent
    uid = running.create(destination={"type": "Node", "nodeName": "node-2"}, expirationSeconds=77, decommissionAfterSeconds=99)
    request = agent.await_request()
    assert (request.placement_id, request.run_id, request.executor_id) == (uid, "spark-one", "1")
    assert (request.destination_host, dict(request.node_selector), request.expiry_seconds) == ("node-2", {}, 77)
    created = parse_time(running.placement()["metadata"]["creationTimestamp"])
    assert request.decommission_at == created + timedelta(seconds=99)
    agent.respond(uid, PlacementStatus.ACCEPTED, "it waits for its turn", executor_id="1", destination_host="node-2")
    assert running.await_phase("Queued")["status"]["statusCode"] == "ACCEPTED"
    agent.respond(uid, PlacementStatus.IN_PROGRESS, "waiting for executor 3", source_node="node-1", new_executor_id="3")
    assert running.await_phase("Moving")["status"]["replacement"] == {"id": "3"}
    batches = {"batch_query": "clicks", "first_batch_ms": 2**40, "ordinary_batch_ms": 1200}
    agent.respond(uid, PlacementStatus.SUCCEEDED, "executor 3 on node-2 has replaced executor 1 on node-1", node="node-2", **batches)
    body = running.await_phase("Succeeded")
    status = body["status"]
    assert {item["type"]: item["status"] for item in status["conditions"]} == {
        "Accepted": "True",
        "Acknowledged": "True",
        "Succeeded": "True",
        "Finished": "True",
        "Reconciling": "False",
        "Stalled": "False",
    }
    assert status["observedGeneration"] == body["metadata"]["generation"]
    assert status["message"] == "executor 3 on node-2 has replaced executor 1 on node-1"
    assert status["executor"] == {"id": "1", "nodeName": "node-1"}
    assert status["replacement"] == {"id": "3", "nodeName": "node-2"}
    assert status["firstBatch"] == {"query": "clicks", "milliseconds": 2**31 - 1, "ordinaryMilliseconds": 1200}
    assert status["statusCode"] == "SUCCEEDED"
    assert status["run"] == {"id": "spark-one"}
    eventually(lambda: not running.placement()["metadata"].get("finalizers"), what="the finalizer is gone")
    left = agent.placements()
    assert (left.requests, left.responses) == ({}, {})
    assert running.world.untouched


def test_get_and_events_tell_the_story(running: PlacementWorld) -> None:
    agent = running.agent
    uid = running.create()
    agent.await_request()
    agent.respond(uid, PlacementStatus.IN_PROGRESS, "waiting for executor 3", source_node="node-1", new_executor_id="3")
    running.await_phase("Moving")
    agent.respond(uid, PlacementStatus.SUCCEEDED, "executor 3 on node-2 has replaced executor 1 on node-1", node="node-2")
    running.await_phase("Succeeded")
    head, row = running.world.server.run_kubectl("get", "epl", "-n", running.world.namespace).splitlines()
    assert head.split() == ["NAME", "APPLICATION", "EXECUTOR", "FROM", "PHASE", "NEW", "TO", "AGE"]
    assert row.split()[:7] == ["placement", "app", "1", "node-1", "Succeeded", "3", "node-2"]
    eventually(lambda: ("Normal", "Succeeded") in running.events(), what="the last Event")
    assert running.events() == [("Normal", reason) for reason in ("Accepted", "WaitingForAgent", "Acknowledged", "Succeeded")]


@pytest.mark.parametrize(
    ("destination", "host", "selector"),
    [
        ({"type": "AnyOther"}, "ANY_OTHER", {}),
        ({"type": "AnyOther", "nodeSelector": {"disk": "ssd"}}, "ANY_OTHER", {"disk": "ssd"}),
        ({"type": "Selector", "nodeSelector": {"disk": "ssd"}}, "", {"disk": "ssd"}),
        ({"type": "LastSeen"}, "LAST_SEEN", {}),
        ({"type": "ForceRestartLastSeen"}, "FORCE_RESTART_LAST_SEEN", {}),
    ],
    ids=["any other", "any other with labels", "labels", "last seen", "forced"],
)
def test_destinations_reach_the_agent(running: PlacementWorld, destination: dict[str, object], host: str, selector: dict[str, str]) -> None:
    running.create(destination=destination)
    request = running.agent.await_request()
    assert (request.destination_host, dict(request.node_selector)) == (host, selector)
    request.check()


def test_an_executor_is_named_by_its_pod(running: PlacementWorld) -> None:
    running.create(podName="app-spark-one-exec-2")
    assert running.agent.await_request().executor_id == "2"
    assert eventually(lambda: running.placement()["status"].get("executor"), what="the executor is known") == {"id": "2"}


def test_placements_of_one_application_come_after_each_other(running: PlacementWorld) -> None:
    agent = running.agent
    first = running.create("first")
    agent.await_request()
    second = running.create("second", executorId="2")
    eventually(lambda: len(agent.placements().requests) == 2, what="both requests")
    assert {*agent.placements().requests} == {first, second}
    agent.respond(first, PlacementStatus.SUCCEEDED, "done")
    running.await_phase("Succeeded", "first")
    assert running.placement("second")["status"]["phase"] == "Pending"
    agent.respond(second, PlacementStatus.SUCCEEDED, "done")
    running.await_phase("Succeeded", "second")
    assert agent.placements().requests == {}


def test_a_finished_placement_is_deleted_after_its_time(running: PlacementWorld) -> None:
    uid = running.create(ttlSecondsAfterFinished=0)
    running.agent.await_request()
    running.agent.respond(uid, PlacementStatus.SUCCEEDED, "done")
    eventually(running.is_gone, what="the placement is deleted")


def test_a_drain_and_a_placement_keep_their_messages_apart(running: PlacementWorld) -> None:
    world = running.world
    drain_agent = world.agent("spark-one", world.application.driver_uid)
    placement = running.create()
    running.agent.await_request()
    drain = world.create_drain()
    assert drain_agent.await_notification().drain_id == drain
    running.agent.respond(placement, PlacementStatus.FAILED, f"drain {drain} has begun: executor 1 was left alone")
    ended = running.await_phase("Failed")
    assert condition(ended, "Succeeded")["reason"] == "NotReplaced"  # type: ignore[index]
    assert drain_agent.notifications().keys() == {drain}
