"""Placement requests and responses as they are stored, and what a request may ask for."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_drain_store.codec import MalformedMessageError
from spark_drain_store.placement_messages import (
    Destination,
    PlacementRequest,
    PlacementResponse,
    PlacementStatus,
    UnsupportedDestinationError,
)

NOW = datetime(2026, 11, 24, 2, 0, tzinfo=UTC)
REQUEST = PlacementRequest(
    placement_id="p", created_at=NOW, executor_id="4", destination_host="node-2", run_id="spark-1", expiry_seconds=10
)
RESPONSE = PlacementResponse(
    placement_id="p", status=PlacementStatus.IN_PROGRESS, updated_at=NOW, run_id="spark-1", executor_id="4", message="reserving"
)


def test_a_request_has_the_names_of_samza() -> None:
    assert json.loads(REQUEST.to_json()) == {
        "version": 1,
        "uuid": "p",
        "timestamp": "2026-11-24T02:00:00.000Z",
        "processorId": "4",
        "destinationHost": "node-2",
        "nodeSelector": {},
        "deploymentId": "spark-1",
        "requestExpiry": 10,
        "decommissionAt": None,
        "withdrawn": False,
    }
    assert {"uuid", "statusCode", "timestamp", "deploymentId", "processorId", "destinationHost", "responseMessage"} <= json.loads(
        RESPONSE.to_json()
    ).keys()


def test_what_is_written_is_read() -> None:
    selected = replace(
        REQUEST, destination_host="", node_selector={"example.com/pool": "fast"}, run_id=None, decommission_at=NOW, withdrawn=True
    )
    for request in (REQUEST, selected):
        assert PlacementRequest.from_json("p", request.to_json()) == request
    full = replace(
        RESPONSE,
        source_node="node-1",
        node="node-2",
        new_executor_id="5",
        decommissioned=True,
        replaced=True,
        batch_query="q",
        first_batch_ms=2,
        ordinary_batch_ms=1,
    )
    for response in (RESPONSE, full):
        assert PlacementResponse.from_json("p", response.to_json()) == response


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        ('{"version": 2}', "version 2"),
        ('{"version": 1, "uuid": "q"}', "'uuid'"),
        ('{"version": 1, "uuid": "p", "timestamp": "yesterday"}', "'timestamp'"),
        ('{"version": 1, "uuid": "p", "timestamp": "2026-11-24T02:00:00Z"}', "'processorId'"),
        ('{"version": 1, "uuid": "p", "timestamp": "2026-11-24T02:00:00Z", "processorId": 4}', "'processorId'"),
        ('{"version": 1, "uuid": "p", "timestamp": "2026-11-24T02:00:00Z", "processorId": "4", "requestExpiry": "10"}', "'requestExpiry'"),
    ],
)
def test_a_malformed_request_is_named(text: str, named: str) -> None:
    with pytest.raises(MalformedMessageError, match=named) as caught:
        PlacementRequest.from_json("p", text)
    assert "placement request 'p'" in str(caught.value)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
)


@given(st.dictionaries(st.sampled_from(sorted({*json.loads(REQUEST.to_json()), *json.loads(RESPONSE.to_json())})), _VALUES))
def test_any_json_is_read_or_refused(changes: dict[str, Any]) -> None:
    for read, base in ((PlacementRequest.from_json, REQUEST), (PlacementResponse.from_json, RESPONSE)):
        assert "'p'" in refusal(read, json.dumps({**json.loads(base.to_json()), **changes}), otherwise="'p'")


def refusal(read: Callable[[str, str], object], text: str, otherwise: str) -> str:
    try:
        read("p", text)
    except MalformedMessageError as error:
        return str(error)
    return otherwise


@pytest.mark.parametrize("destination", ["n", "node-2", "ip-10-0-0-1.eu-west-1.compute.internal", *Destination])
def test_destinations(destination: str) -> None:
    replace(REQUEST, destination_host=destination).check()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"executor_id": ""}, "processorId"),
        ({"executor_id": "driver"}, "'driver'"),
        ({"executor_id": "0"}, "'0'"),
        ({"expiry_seconds": 0}, "requestExpiry must be 1 to 86400 seconds, not 0"),
        ({"expiry_seconds": 86_401}, "86401"),
        ({"decommission_at": NOW, "destination_host": "FORCE_RESTART_LAST_SEEN"}, "decommissionAt cannot be joined"),
        ({"destination_host": ""}, "destinationHost"),
        ({"destination_host": "Node-2"}, "ANY_OTHER, LAST_SEEN, FORCE_RESTART_LAST_SEEN, not 'Node-2'"),
        ({"destination_host": "node_2"}, "'node_2'"),
        ({"destination_host": "ANY_HOST"}, "'ANY_HOST'"),
        ({"node_selector": {"pool": "fast"}}, "nodeSelector"),
        ({"node_selector": {"/pool": "fast"}, "destination_host": ""}, "'/pool'"),
        ({"node_selector": {"a..b/pool": "fast"}, "destination_host": ""}, "'a..b/pool'"),
        ({"node_selector": {"a.-b/pool": "fast"}, "destination_host": ""}, "'a.-b/pool'"),
        ({"node_selector": {f"{'a.' * 127}/pool": "fast"}, "destination_host": ""}, "no label's name"),
        ({"destination_host": "node-.2"}, "'node-.2'"),
        ({"node_selector": {"pool": "fast lane"}, "destination_host": ""}, "'fast lane'"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(UnsupportedDestinationError) as caught:
        replace(REQUEST, **changes).check()
    assert named in str(caught.value)
