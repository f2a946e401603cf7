"""What is done next for a node that is to be cleared."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from spark_drain_operator.maintenance.decide import ATTEMPTS, Attempt, decide
from spark_drain_operator.storage.nodes import PodOnNode, Role

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
A1 = PodOnNode("team", "a-exec-1", "uid-a1", "a", Role.EXECUTOR)
A2 = PodOnNode("team", "a-exec-2", "uid-a2", "a", Role.EXECUTOR)
A_DRIVER = PodOnNode("team", "a-driver", "uid-a", "a", Role.DRIVER)
B1 = PodOnNode("team", "b-exec-1", "uid-b1", "b", Role.EXECUTOR)
OPTED = {("team", "a"), ("team", "b")}

MOVING = Attempt("team", "a-off-1", "ExecutorPlacement", "a", "uid-a1")
MOVED = replace(MOVING, finished=True, succeeded=True)
FAILED = replace(MOVING, finished=True, completion_time=NOW - timedelta(seconds=60))
EARLIER = replace(FAILED, earlier=True)
RESTARTED = Attempt("team", "a-off-1", "PipelineDrain", "a", "uid-before", finished=True, succeeded=True)
JUST_FAILED = replace(FAILED, completion_time=NOW - timedelta(seconds=10))


@pytest.mark.parametrize(
    ("pods", "attempts", "start", "over"),
    [
        pytest.param([A1, A2], [], {"a-exec-1": 1, "a-exec-2": 1}, False, id="all executors of an application are asked for at once"),
        pytest.param([A_DRIVER, A1], [], {"a-driver": 1}, False, id="a driver takes its executors along"),
        pytest.param([A1], [MOVING], {}, False, id="under way"),
        pytest.param([A1], [MOVED], {}, False, id="moved, and its pod is not gone yet"),
        pytest.param([replace(A1, terminating=True)], [], {}, False, id="it is going already"),
        pytest.param([A1], [FAILED], {"a-exec-1": 2}, False, id="tried again"),
        pytest.param([A1], [JUST_FAILED], {}, False, id="not tried again at once: what was in the way may still be there"),
        pytest.param([A1], [FAILED] * ATTEMPTS, {}, True, id="given up"),
        pytest.param([A1], [EARLIER] * ATTEMPTS, {"a-exec-1": 4}, False, id="an earlier command has given up"),
        pytest.param([A1], [replace(MOVED, namespace="other")], {"a-exec-1": 1}, False, id="what another namespace says of it"),
        pytest.param([A_DRIVER, A1], [RESTARTED], {}, True, id="it came back: it tolerates that the node is cordoned"),
        pytest.param([A_DRIVER], [replace(RESTARTED, earlier=True)], {"a-driver": 1}, False, id="it was restarted by an earlier command"),
        pytest.param([A_DRIVER], [replace(RESTARTED, pod_uid="uid-a")], {}, False, id="restarted, and its pod is not gone yet"),
        pytest.param([A1, A2], [FAILED] * ATTEMPTS, {"a-exec-2": 1}, False, id="one is given up, and the other is not"),
        pytest.param([A1, B1], [], {"a-exec-1": 1}, False, id="one application at a time"),
        pytest.param([A2, B1], [MOVING], {"a-exec-2": 1}, False, id="the limit is of applications"),
        pytest.param([A1, B1], [MOVING], {}, False, id="the limit counts what is under way from earlier"),
        pytest.param([B1], [MOVING], {"b-exec-1": 1}, False, id="what is said to move a pod that is not there takes nobody's place"),
        pytest.param([A1], [replace(MOVING, application="b")], {"a-exec-1": 1}, False, id="what another application's drain says of it"),
        pytest.param([replace(A1, application="c")], [], {}, True, id="not opted in"),
        pytest.param([replace(A1, namespace="other")], [], {}, True, id="an application of the same name elsewhere"),
    ],
)
def test_what_is_started(pods: list[PodOnNode], attempts: list[Attempt], start: dict[str, int], over: bool) -> None:
    decision = decide(pods, attempts, OPTED, at_once=1, now=NOW)
    assert {pod.name: number for pod, number in decision.start} == start
    assert decision.over == over


def test_the_number_of_an_attempt_is_new_where_those_before_were_deleted() -> None:
    ((_, number),) = decide([A1], [replace(FAILED, number=2)], OPTED, at_once=1, now=NOW).start
    assert number == 3


def test_what_comes_back_is_named() -> None:
    assert decide([A_DRIVER, A1], [RESTARTED], OPTED, at_once=1, now=NOW).came_back == (A_DRIVER,)


def test_what_is_left_alone_is_named() -> None:
    assert decide([A1, B1], [], {("team", "a")}, at_once=1, now=NOW).left_alone == (B1,)


@pytest.mark.parametrize("attempts", [[], [FAILED] * ATTEMPTS])
def test_what_somebody_else_drains_is_not_touched_while_there_is_time(attempts: list[Attempt]) -> None:
    pod = replace(A1, node_uid="n")
    decision = decide([pod, B1], attempts, OPTED, at_once=1, now=NOW, drained={pod})
    assert ([pod.name for pod, _ in decision.start], decision.stuck, decision.over) == (["b-exec-1"], (), False)
    (first, *_) = decide([pod], attempts, OPTED, at_once=1, now=NOW, drained={pod}, urgent={"n"}).start
    assert first[0] == pod


ON_ONE, ON_OTHER = replace(A1, node_uid="one"), replace(A2, node_uid="other")
DRIVER_ON_OTHER = replace(A_DRIVER, node_uid="other")
RESTARTING = replace(RESTARTED, finished=False, succeeded=False, node_uid="other")


@pytest.mark.parametrize(
    ("pods", "attempts", "start", "stuck", "over"),
    [
        pytest.param([ON_ONE, DRIVER_ON_OTHER], [], {"a-driver"}, set(), False, id="a driver takes executors on another node along"),
        pytest.param([ON_ONE], [RESTARTING], set(), set(), False, id="an executor waits while its driver leaves another node"),
        pytest.param(
            [ON_ONE], [replace(MOVING, node_uid="other", pod_uid="x")], {"a-exec-1"}, set(), False, id="both nodes of an application"
        ),
        pytest.param([ON_ONE, replace(B1, node_uid="other")], [MOVING], set(), set(), False, id="the limit is the cluster's"),
        pytest.param([replace(B1, node_uid="hurry")], [MOVING], {"b-exec-1"}, set(), False, id="no limit without time"),
        pytest.param([DRIVER_ON_OTHER], [replace(RESTARTED, node_uid="one")], {"a-driver"}, set(), False, id="it came from another node"),
        pytest.param([ON_ONE], [FAILED] * ATTEMPTS, set(), {"a-exec-1"}, True, id="tried in vain"),
        pytest.param(
            [replace(A1, node_uid="hurry")], [FAILED] * ATTEMPTS, {"a-exec-1"}, set(), False, id="tried in vain, decommissioned in the end"
        ),
        pytest.param([replace(A1, node_uid="hurry")], [FAILED] * (ATTEMPTS + 1), set(), {"a-exec-1"}, True, id="and that in vain, too"),
        pytest.param(
            [replace(A_DRIVER, node_uid="hurry")], [replace(FAILED, pod_uid="uid-a")] * ATTEMPTS, {"a-driver"}, set(), False, id="a driver"
        ),
        pytest.param([replace(A1, node_uid="late")], [], set(), {"a-exec-1"}, True, id="too late to begin"),
        pytest.param([replace(A1, node_uid="late")], [MOVING], set(), {"a-exec-1"}, True, id="too late, and it goes on"),
        pytest.param([replace(B1, node_uid="late"), ON_OTHER], [], {"a-exec-2"}, {"b-exec-1"}, False, id="what is late is in nobody's way"),
    ],
)
def test_several_nodes(pods: list[PodOnNode], attempts: list[Attempt], start: set[str], stuck: set[str], over: bool) -> None:
    decision = decide(pods, attempts, OPTED, at_once=1, now=NOW, late={"late"}, urgent={"hurry"})
    assert {pod.name for pod, _ in decision.start} == start
    assert {pod.name for pod in decision.stuck} == stuck
    assert decision.over == over
