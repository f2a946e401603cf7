"""The template of the pod that a placement asks for."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from spark_drain_agent.placement.pod_template import bound_template, conflict
from spark_drain_store.placement_messages import PlacementRequest

REQUEST = PlacementRequest(placement_id="p", created_at=datetime(2026, 11, 24, tzinfo=UTC), executor_id="4", destination_host="node-2")
EMPTY = {"apiVersion": "v1", "kind": "Pod"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def terms(pod: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return found


@pytest.mark.parametrize(
    ("destination", "operator", "node"),
    [
        ("node-2", "In", "node-2"),
        ("LAST_SEEN", "In", "node-1"),
        ("FORCE_RESTART_LAST_SEEN", "In", "node-1"),
        ("ANY_OTHER", "NotIn", "node-1"),
    ],
)
def test_a_node(destination: str, operator: str, node: str) -> None:
    pod = bound_template(EMPTY, replace(REQUEST, destination_host=destination), "node-1", "note")
    assert terms(pod) == [{"matchFields": [{"key": "metadata.name", "operator": operator, "values": [node]}]}]
    assert pod["metadata"]["annotations"] == {"note": "p"}
    assert EMPTY == {"apiVersion": "v1", "kind": "Pod"}


def test_labels() -> None:
    template = {**EMPTY, "spec": {"nodeSelector": {"zone": "a"}}}
    pod = bound_template(template, replace(REQUEST, destination_host="", node_selector={"pool": "fast"}), "node-1", "note")
    assert pod["spec"] == {"nodeSelector": {"zone": "a", "pool": "fast"}}


def test_what_the_application_demands_stays() -> None:
    """Terms are alternatives: each gets the rule, and none is added."""
    own = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"]
    template = {**EMPTY, "spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": own}}}, "containers": [{"name": "spark"}]}}
    pod = bound_template(template, REQUEST, "node-1", "note")
    assert [term["matchExpressions"] for term in terms(pod)] == [term["matchExpressions"] for term in own]
    assert all(term["matchFields"][0]["values"] == ["node-2"] for term in terms(pod))
    assert pod["spec"]["containers"] == [{"name": "spark"}]


def test_labels_that_the_application_wants_otherwise() -> None:
    request = replace(REQUEST, destination_host="", node_selector={"pool": "fast"})
    template = {**EMPTY, "spec": {"nodeSelector": {"pool": "slow"}}}
    assert "pool=slow, the request pool=fast" in conflict(request, template, {})
    assert "pool=gpu" in conflict(request, EMPTY, {"pool": "gpu"})
    assert conflict(request, EMPTY, {"pool": "fast", "zone": "a"}) == ""
