"""What is created to move a pod."""

from typing import Any

import pytest
from spark_drain_operator.kinds.drain.resource import RESOURCE as DRAINS
from spark_drain_operator.kinds.placement.resource import RESOURCE as PLACEMENTS
from spark_drain_operator.maintenance.objects import attempt_of, in_the_way, object_for
from spark_drain_operator.storage.nodes import PodOnNode, Role
from spark_drain_operator.storage.own_objects import Resource

DRIVER = PodOnNode("team", "a-driver", "uid-d", "a", Role.DRIVER)


@pytest.mark.parametrize(("left", "seconds"), [(30, 60), (600, 60), (1200, 120), (1800, 180), (86_400, 180)])
def test_a_driver_that_has_just_started_may_take_longer_to_answer_where_there_is_time(left: int, seconds: int) -> None:
    assert object_for(DRIVER, 1, left)["spec"]["acknowledgeTimeoutSeconds"] == seconds


@pytest.mark.parametrize("left", [300, 600, 1800, 86_400])
def test_one_that_answers_late_is_still_stopped_before_the_time_of_its_node_is_over(left: int) -> None:
    spec = object_for(DRIVER, 1, left)["spec"]
    assert spec["acknowledgeTimeoutSeconds"] + spec["timeoutSeconds"] <= left


@pytest.mark.parametrize(
    ("spec", "finished", "expected"),
    [
        ({}, None, {Role.DRIVER, Role.EXECUTOR}),
        ({}, "False", {Role.DRIVER, Role.EXECUTOR}),
        ({}, "True", set()),
        ({"execution": "PlanOnly"}, "False", set()),
        ({"execution": "AfterApproval"}, "False", {Role.DRIVER}),
        ({"execution": "AfterApproval"}, "True", set()),
        ({"execution": "AfterApproval", "approved": True}, "False", {Role.DRIVER, Role.EXECUTOR}),
    ],
)
def test_a_drain_that_comes_first(spec: dict[str, Any], finished: str | None, expected: set[Role]) -> None:
    status = {} if finished is None else {"status": {"conditions": [{"type": "Finished", "status": finished}]}}
    assert {role for role in Role if in_the_way({"spec": spec, **status}, role)} == expected


@pytest.mark.parametrize(
    ("resource", "phase", "reason", "expected"),
    [
        (PLACEMENTS, "Failed", "Decommissioned", True),
        (PLACEMENTS, "Failed", "NotReplaced", False),
        (PLACEMENTS, "Rejected", "BadRequest", False),
        (DRAINS, "ForceStopped", "DeadlineExceeded", True),
        (DRAINS, "Failed", "AgentNotResponding", False),
        (DRAINS, "Drained", "Drained", False),
    ],
)
def test_a_pod_that_was_ended_because_its_time_was_over(resource: Resource, phase: str, reason: str, expected: bool) -> None:
    conditions = [{"type": "Succeeded", "status": "False", "reason": reason}, {"type": "Finished", "status": "True", "reason": phase}]
    metadata = {"namespace": "team", "name": "a-off-0123456789-1"}
    body = {"metadata": metadata, "spec": {"applicationRef": {"name": "a"}}, "status": {"phase": phase, "conditions": conditions}}
    assert attempt_of(resource, body).by_force is expected
