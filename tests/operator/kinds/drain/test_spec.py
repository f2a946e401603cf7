"""The spec of a drain."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from spark_drain_operator.engine.kind import InvalidSpecError
from spark_drain_operator.kinds.drain.spec import DrainSpec


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"applicationRef": {}},
        {"applicationRef": None},
        {"applicationRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}, "timeoutSeconds": "soon"},
    ],
)
def test_a_spec_that_slipped_past_the_schema_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpecError, match="apply the CustomResourceDefinition"):
        DrainSpec.parse(spec)


@pytest.mark.parametrize(
    "name", ["a/../../configmaps?watch=true&x=", "..", "", "App", "a_b", "a,spark-role=driver", "x" * 64, "a\n", "-a", "ä"]
)
def test_a_name_that_is_none_is_refused(name: str) -> None:
    """The definition in the cluster may be that of an older release."""
    with pytest.raises(InvalidSpecError, match="cannot be the name of a SparkApplication"):
        DrainSpec.parse({"applicationRef": {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": name}})


@pytest.mark.parametrize("time", ["2030-01-01t00:00:00z", "2030-01-01T00:00:00Z", "2030-01-01T01:00:00+01:00"])
def test_a_time_in_all_forms_of_rfc_3339(time: str) -> None:
    parsed = DrainSpec.parse({"applicationRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}, "expirationTime": time})
    assert parsed.expiration == datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("time", ["0000-01-01T00:00:00Z", "2026-01-01T00:00:00-24:00", "9999-12-31T23:59:59-23:59"])
def test_a_time_that_the_api_server_takes_and_no_calendar_has(time: str) -> None:
    with pytest.raises(InvalidSpecError, match=re.escape(f"spec.expirationTime {time!r} cannot be read")):
        DrainSpec.parse({"applicationRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}, "expirationTime": time})
