"""The definitions keep to Kubernetes' API conventions: what kube-api-linter checks, on YAML, and what the operator writes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml
from spark_drain_operator.clock import now
from spark_drain_operator.engine.status import BasePhase, Status
from spark_drain_operator.kinds.drain import reasons as drain_reasons
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.kinds.placement import reasons as placement_reasons
from spark_drain_operator.kinds.placement.spec import PlacementSpec
from spark_drain_operator.kinds.placement.status import PlacementStatus

CRDS = Path(__file__).resolve().parents[2] / "crds"
Field = tuple[str, dict[str, Any]]


def walk(schema: dict[str, Any], path: str = "") -> Iterator[Field]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


@dataclass(frozen=True)
class Definition:
    """One of the operator's own kinds, and what the operator knows of it."""

    file: str
    status: type[Status]
    phases: type[BasePhase]
    conditions: type[StrEnum]
    switches: frozenset[str]
    """Consent: there is no third answer to it."""
    may_change: frozenset[str] = frozenset()

    @property
    def version(self) -> dict[str, Any]:
        crd = yaml.load((CRDS / self.file).read_text(), Loader=yaml.CSafeLoader)
        found: dict[str, Any] = crd["spec"]["versions"][0]
        return found

    @property
    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = self.version["schema"]["openAPIV3Schema"]
        return found

    @property
    def fields(self) -> list[Field]:
        return list(walk(self.schema))

    @property
    def ours(self) -> list[Field]:
        return [(path, schema) for path, schema in self.fields if path.startswith((".spec", ".status"))]

    def complaints(self, check: Callable[[str, dict[str, Any]], Any]) -> list[str]:
        return [path for path, schema in self.ours if not check(path, schema)]


DRAIN = Definition(
    "pipelinedrain.yaml",
    DrainStatus,
    drain_reasons.Phase,
    drain_reasons.ConditionType,
    frozenset({".spec.approved", ".spec.cancel", ".spec.checkpoint.acceptBatchIdRestart"}),
    frozenset({"timeoutSeconds"}),
)
PLACEMENT = Definition(
    "executorplacement.yaml",
    PlacementStatus,
    placement_reasons.Phase,
    placement_reasons.ConditionType,
    frozenset({".spec.cancel"}),
)


@pytest.fixture(params=[DRAIN, PLACEMENT], ids=lambda definition: definition.file.removesuffix(".yaml"))
def definition(request: pytest.FixtureRequest) -> Definition:
    found: Definition = request.param
    return found


def test_every_definition_is_looked_at() -> None:
    assert {path.name for path in CRDS.glob("*.yaml")} - {"kustomization.yaml"} == {DRAIN.file, PLACEMENT.file}


def test_every_field_is_described(definition: Definition) -> None:
    assert not definition.complaints(lambda path, schema: path.endswith(("[]", "{}")) or schema.get("description", "").endswith("."))


def test_strings_are_bounded(definition: Definition) -> None:
    assert not definition.complaints(lambda _, schema: schema.get("type") != "string" or "maxLength" in schema or "enum" in schema)


def test_lists_are_bounded_and_say_how_they_merge(definition: Definition) -> None:
    assert not definition.complaints(
        lambda _, schema: schema.get("type") != "array" or {"maxItems", "x-kubernetes-list-type"} <= schema.keys()
    )


def test_map_lists_require_their_keys(definition: Definition) -> None:
    def keyed(_: str, schema: dict[str, Any]) -> bool:
        keys = schema.get("x-kubernetes-list-map-keys", [])
        return set(keys) <= set(schema.get("items", {}).get("required", []))

    assert not definition.complaints(keyed)


def test_numbers_are_whole_bounded_and_sized(definition: Definition) -> None:
    assert not definition.complaints(lambda _, schema: schema.get("type") != "number")
    assert not definition.complaints(lambda _, schema: schema.get("type") != "integer" or {"minimum", "format"} <= schema.keys())
    spec = [(path, schema) for path, schema in definition.ours if path.startswith(".spec") and schema.get("type") == "integer"]
    assert spec
    assert all("maximum" in schema for _, schema in spec)


def test_booleans_are_the_switches(definition: Definition) -> None:
    assert {path for path, schema in definition.ours if schema.get("type") == "boolean"} == definition.switches


def test_maps_are_label_selectors_and_there_are_no_free_objects_and_no_nulls(definition: Definition) -> None:
    """A nodeSelector is a map of strings as that of a pod is."""
    maps = [(path, schema) for path, schema in definition.ours if "additionalProperties" in schema]
    assert {path for path, _ in maps} <= {".spec.destination.nodeSelector"}
    assert all(schema["additionalProperties"]["type"] == "string" and "maxProperties" in schema for _, schema in maps)
    assert not definition.complaints(lambda _, schema: "x-kubernetes-preserve-unknown-fields" not in schema)
    assert not definition.complaints(
        lambda _, schema: schema.get("type") != "object" or {"properties", "additionalProperties"} & schema.keys()
    )
    assert not definition.complaints(lambda _, schema: "nullable" not in schema)


def test_names_are_camel_case_and_times_are_not_stamps(definition: Definition) -> None:
    for path, _ in definition.ours:
        name = path.rsplit(".", 1)[-1].removesuffix("[]").removesuffix("{}")
        assert re.fullmatch(r"[a-z][a-zA-Z0-9]*", name), path
        assert "stamp" not in name.lower(), path
        assert "duration" not in name.lower(), path


def test_enums_are_camel_case(definition: Definition) -> None:
    for path, schema in definition.ours:
        if path not in (".spec.applicationRef.apiVersion",):
            assert all(re.fullmatch(r"[A-Z][A-Za-z]*", value) for value in schema.get("enum", [])), path


def test_no_default_hides_what_was_not_said(definition: Definition) -> None:
    """But for a status that says that nothing has been seen yet, which kstatus needs."""
    assert not definition.complaints(lambda path, schema: "default" not in schema or path == ".status")


def test_status_is_a_subresource_and_optional(definition: Definition) -> None:
    assert definition.version["subresources"] == {"status": {}}
    assert definition.schema["required"] == ["spec"]


def test_rules_say_which_field_and_the_way_out(definition: Definition) -> None:
    rules = [(path, rule) for path, schema in definition.fields for rule in schema.get("x-kubernetes-validations", [])]
    assert len(rules) >= 5
    for path, rule in rules:
        assert re.search(r"must|may", rule["message"]), (path, rule)
        assert len(rule["message"]) > 40, (path, rule)


def test_one_rule_keeps_the_spec_from_changing(definition: Definition) -> None:
    rules = [(path, rule) for path, schema in definition.fields for rule in schema.get("x-kubernetes-validations", [])]
    transitions = [(path, rule) for path, rule in rules if "oldSelf" in rule["rule"] and not rule.get("optionalOldSelf")]
    assert [path for path, _ in transitions] == ["", ".spec"], "after the end, and before it"
    _, (_, rule) = transitions
    for name in definition.schema["properties"]["spec"]["properties"]:
        if name not in definition.may_change:
            assert f"self.{name} " in rule["rule"] or f"self.{name})" in rule["rule"], name
            assert f"`{name}`" in rule["messageExpression"], name
    assert not [name for name in definition.may_change if f"self.{name}" in rule["rule"]]


@pytest.mark.parametrize("path", [".spec.applicationRef.name", ".status.phase"])
def test_phase_and_application_can_be_selected(definition: Definition, path: str) -> None:
    assert {"jsonPath": path} in definition.version["selectableFields"]


def test_columns_lead_to_fields(definition: Definition) -> None:
    for column in definition.version["additionalPrinterColumns"]:
        path = re.sub(r"\[.*", "", column["jsonPath"])
        assert path.startswith(".metadata") or path in dict(definition.fields), column


def test_phases_and_conditions_are_those_of_the_operator(definition: Definition) -> None:
    assert dict(definition.ours)[".status.phase"]["enum"] == [str(phase) for phase in definition.phases]
    text = dict(definition.ours)[".status.conditions"]["description"]
    assert all(str(type_) in text for type_ in definition.conditions)


def test_the_status_that_is_written_is_in_the_schema(definition: Definition) -> None:
    status = definition.status.read({"metadata": {"generation": 3}}, now())  # type: ignore[attr-defined]
    for field in fields(definition.status):
        value = getattr(status, field.name)
        if value == "":
            setattr(status, field.name, "text")
        elif value is None and field.name.endswith("time"):
            setattr(status, field.name, now())
        elif value == 0 or (value is None and field.name.endswith("_ms")):
            setattr(status, field.name, 1)
    written = status.as_object()
    known = definition.schema["properties"]["status"]["properties"]
    assert set(written) <= set(known)
    for name, value in written.items():
        if isinstance(value, dict) and value:
            assert set(value) <= set(known[name]["properties"]), name
            assert name in ("withdrawal", "nextVersion") or set(value) == set(known[name]["properties"]), name


def test_every_field_of_a_placement_is_read() -> None:
    reference = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "app"}
    least = {"applicationRef": reference, "destination": {"type": "AnyOther"}}
    plain = PlacementSpec.parse(least)
    values: dict[str, Any] = {
        "runId": "run",
        "executorId": "4",
        "podName": "app-exec-4",
        "destination": {"type": "Node", "nodeName": "node"},
        "expirationSeconds": 7,
        "decommissionAfterSeconds": 0,
        "acknowledgeTimeoutSeconds": 8,
        "cancel": True,
        "ttlSecondsAfterFinished": 0,
    }
    assert set(values) | {"applicationRef"} == set(PLACEMENT.schema["properties"]["spec"]["properties"])
    for name, value in values.items():
        assert PlacementSpec.parse({**least, name: value}) != plain, name


def test_every_field_of_a_drain_is_read() -> None:
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
    assert set(values) | {"applicationRef"} == set(DRAIN.schema["properties"]["spec"]["properties"])
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
