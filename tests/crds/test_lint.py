"""The definition keeps to Kubernetes' API conventions: what kube-api-linter checks, on YAML, and what the operator writes."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from spark_drain_operator.clock import now
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.kinds.drain.status import DrainStatus

CRD = yaml.load((Path(__file__).resolve().parents[2] / "crds/pipelinedrain.yaml").read_text(), Loader=yaml.CSafeLoader)
VERSION = CRD["spec"]["versions"][0]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]
SWITCHES = {".spec.approved", ".spec.cancel", ".spec.checkpoint.acceptBatchIdRestart"}  # consent: there is no third answer to it
Field = tuple[str, dict[str, Any]]


def walk(schema: dict[str, Any], path: str = "") -> Iterator[Field]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


ALL = list(walk(SCHEMA))
OURS = [(path, schema) for path, schema in ALL if path.startswith((".spec", ".status"))]


def complaints(check: Any) -> list[str]:
    return [path for path, schema in OURS if not check(path, schema)]


def test_every_field_is_described() -> None:
    assert not complaints(lambda path, schema: path.endswith("[]") or schema.get("description", "").endswith("."))


def test_strings_are_bounded() -> None:
    assert not complaints(lambda _, schema: schema.get("type") != "string" or "maxLength" in schema or "enum" in schema)


def test_lists_are_bounded_and_say_how_they_merge() -> None:
    assert not complaints(lambda _, schema: schema.get("type") != "array" or {"maxItems", "x-kubernetes-list-type"} <= schema.keys())


def test_map_lists_require_their_keys() -> None:
    def keyed(_: str, schema: dict[str, Any]) -> bool:
        keys = schema.get("x-kubernetes-list-map-keys", [])
        return set(keys) <= set(schema.get("items", {}).get("required", []))

    assert not complaints(keyed)


def test_numbers_are_whole_bounded_and_sized() -> None:
    assert not complaints(lambda _, schema: schema.get("type") != "number")
    assert not complaints(lambda _, schema: schema.get("type") != "integer" or {"minimum", "format"} <= schema.keys())
    spec = [(path, schema) for path, schema in OURS if path.startswith(".spec") and schema.get("type") == "integer"]
    assert spec
    assert all("maximum" in schema for _, schema in spec)


def test_booleans_are_the_switches() -> None:
    assert {path for path, schema in OURS if schema.get("type") == "boolean"} == SWITCHES


def test_there_are_no_maps_no_free_objects_and_no_nulls() -> None:
    assert not complaints(lambda _, schema: "additionalProperties" not in schema)
    assert not complaints(lambda _, schema: "x-kubernetes-preserve-unknown-fields" not in schema)
    assert not complaints(lambda _, schema: schema.get("type") != "object" or "properties" in schema)
    assert not complaints(lambda _, schema: "nullable" not in schema)


def test_names_are_camel_case_and_times_are_not_stamps() -> None:
    for path, _ in OURS:
        name = path.rsplit(".", 1)[-1].removesuffix("[]")
        assert re.fullmatch(r"[a-z][a-zA-Z0-9]*", name), path
        assert "stamp" not in name.lower(), path
        assert "duration" not in name.lower(), path


def test_enums_are_camel_case() -> None:
    for path, schema in OURS:
        if path not in (".spec.applicationRef.apiVersion",):
            assert all(re.fullmatch(r"[A-Z][A-Za-z]*", value) for value in schema.get("enum", [])), path


def test_no_default_hides_what_was_not_said() -> None:
    """But for a status that says that nothing has been seen yet, which kstatus needs."""
    assert not complaints(lambda path, schema: "default" not in schema or path == ".status")


def test_status_is_a_subresource_and_optional() -> None:
    assert VERSION["subresources"] == {"status": {}}
    assert SCHEMA["required"] == ["spec"]


def test_rules_say_which_field_and_the_way_out() -> None:
    rules = [(path, rule) for path, schema in ALL for rule in schema.get("x-kubernetes-validations", [])]
    assert len(rules) >= 8
    for path, rule in rules:
        assert re.search(r"must|may", rule["message"]), (path, rule)
        assert len(rule["message"]) > 40, (path, rule)


def test_one_rule_keeps_the_spec_from_changing() -> None:
    rules = [(path, rule) for path, schema in ALL for rule in schema.get("x-kubernetes-validations", [])]
    transitions = [(path, rule) for path, rule in rules if "oldSelf" in rule["rule"] and not rule.get("optionalOldSelf")]
    assert [path for path, _ in transitions] == ["", ".spec"], "after the end, and before it"
    _, (_, rule) = transitions
    for name in SCHEMA["properties"]["spec"]["properties"]:
        if name != "timeoutSeconds":
            assert f"self.{name} " in rule["rule"] or f"self.{name})" in rule["rule"], name
            assert f"`{name}`" in rule["messageExpression"], name
    assert "self.timeoutSeconds" not in rule["rule"]


@pytest.mark.parametrize("path", [".spec.applicationRef.name", ".status.phase"])
def test_phase_and_application_can_be_selected(path: str) -> None:
    assert {"jsonPath": path} in VERSION["selectableFields"]


def test_columns_lead_to_fields() -> None:
    for column in VERSION["additionalPrinterColumns"]:
        path = re.sub(r"\[.*", "", column["jsonPath"])
        assert path.startswith(".metadata") or path in dict(ALL), column


def test_phases_and_conditions_are_those_of_the_operator() -> None:
    assert dict(OURS)[".status.phase"]["enum"] == [str(phase) for phase in Phase]
    text = dict(OURS)[".status.conditions"]["description"]
    assert all(str(type_) in text for type_ in ConditionType)


def test_the_status_that_is_written_is_in_the_schema() -> None:
    status = DrainStatus(generation=3, now=now())
    for field in fields(DrainStatus):
        value = getattr(status, field.name)
        if value == "":
            setattr(status, field.name, "text")
        elif value is None and field.name.endswith("time"):
            setattr(status, field.name, now())
    status.notification_attempt = 1
    written = status.as_object()
    known = SCHEMA["properties"]["status"]["properties"]
    assert set(written) <= set(known)
    for name in ("application", "run", "notification", "scaleDown", "resultRef"):
        assert set(written[name]) == set(known[name]["properties"])


def test_every_field_of_the_spec_is_read() -> None:
    reference = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "app"}
    plain = DrainSpec.parse({"applicationRef": reference})
    values: dict[str, Any] = {
        "runId": "run",
        "mode": "CatchUp",
        "queries": ["a", "b"],
        "incompleteWindows": {"policy": "SideOutput", "sideOutput": {"path": "p", "format": "f"}},
        "checkpoint": {"policy": "Reseed", "acceptBatchIdRestart": True, "retainArchives": 0},
        "stateLossPolicy": "Accept",
        "stateExport": {"path": "e"},
        "execution": "PlanOnly",
        "approved": True,
        "cancel": True,
        "ifNotRunning": "Reject",
        "acknowledgeTimeoutSeconds": 7,
        "timeoutSeconds": 8,
        "expirationTime": "2030-01-01T00:00:00Z",
        "expirationSeconds": 60,
        "onTimeout": "ForceStop",
        "afterDrain": "Keep",
        "ttlSecondsAfterFinished": 0,
    }
    assert set(values) | {"applicationRef"} == set(SCHEMA["properties"]["spec"]["properties"])
    for name, value in values.items():
        assert DrainSpec.parse({"applicationRef": reference, name: value}) != plain, name
    assert dict(DrainSpec.parse({"applicationRef": reference, **values}).options) == {
        "queries": "a,b",
        "incompleteWindows.policy": "SideOutput",
        "incompleteWindows.sideOutput.path": "p",
        "incompleteWindows.sideOutput.format": "f",
        "checkpoint.policy": "Reseed",
        "checkpoint.acceptBatchIdRestart": "true",
        "checkpoint.retainArchives": "0",
        "stateLossPolicy": "Accept",
        "stateExport.path": "e",
        "execution": "PlanOnly",
        "afterDrain": "Keep",
    }
    assert dict(plain.options) == {}
