"""Whatever an agent answers, the definition takes the status."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import jsonschema
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from spark_drain_operator.engine.activity import mark_active
from spark_drain_operator.engine.ending import conclude
from spark_drain_operator.kinds.placement.decide import answered, phase_of
from spark_drain_operator.kinds.placement.status import PlacementStatus
from spark_drain_operator.kinds.placement.steps.follow import see
from spark_drain_store import MalformedMessageError
from spark_drain_store.placement_messages import PlacementResponse
from spark_drain_store.placement_messages import PlacementStatus as Code

from tests.operator.strategies import NUMBERS, TEXT, objects
from tests.support.apiserver import ROOT

_DEFINITION = yaml.safe_load((ROOT / "crds/executorplacement.yaml").read_text())["spec"]["versions"][0]
SCHEMA = jsonschema.Draft7Validator(_DEFINITION["schema"]["openAPIV3Schema"]["properties"]["status"])
NOW = datetime(2030, 1, 1, tzinfo=UTC)
RESPONSES = objects(
    {
        "statusCode": st.sampled_from([code.value for code in Code]),
        "timestamp": st.just("2030-01-01T00:00:00Z"),
        **dict.fromkeys(("deploymentId", "processorId", "destinationHost", "sourceNode", "node", "newExecutorId", "responseMessage"), TEXT),
        "requestExpiry": NUMBERS,
    }
)


@given(response=RESPONSES, wish=st.sampled_from(["", "Deleted"]))
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
def test_whatever_is_answered_the_definition_takes_the_status(response: dict[str, Any], wish: str) -> None:
    try:
        read = PlacementResponse.from_json("mine", json.dumps({"version": 1, "uuid": "mine", **response}))
    except MalformedMessageError:
        return
    status = PlacementStatus(generation=1, now=NOW)
    see(SimpleNamespace(status=status), read)  # type: ignore[arg-type]
    status.phase, status.status_code = phase_of(read) or status.phase, str(read.status)
    ending = answered(read, wish)
    if ending is None:
        mark_active(status, read.message)
    else:
        conclude(status, ending)
    errors = [f"{error.json_path}: {error.message[:200]}" for error in SCHEMA.iter_errors(json.loads(json.dumps(status.as_object())))]
    assert not errors
