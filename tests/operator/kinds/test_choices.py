"""Fields with a choice: the definition and the operator know the same values, and another one is never taken for a default."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml
from spark_drain_operator.engine.kind import InvalidSpecError
from spark_drain_operator.kinds.drain import spec as drain_spec
from spark_drain_operator.kinds.placement import spec as placement_spec

from tests.support.apiserver import ROOT, drain_body, placement_body

KINDS = {
    "pipelinedrain": (drain_spec.DrainSpec.parse, drain_spec.VALUES, drain_body("a")["spec"]),
    "executorplacement": (placement_spec.PlacementSpec.parse, placement_spec.VALUES, placement_body("a")["spec"]),
}
OF_THE_APPLICATION = "applicationRef."
"""Which kinds of applications are served, the adapters say."""


def choices(schema: Mapping[str, Any], field: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each field below one that has a choice, and its values."""
    if "enum" in schema:
        yield field, tuple(schema["enum"])
    for name, below in schema.get("properties", {}).items():
        yield from choices(below, f"{field}.{name}".lstrip("."))


@pytest.mark.parametrize("name", KINDS)
def test_the_definition_has_the_same(name: str) -> None:
    (version,) = yaml.safe_load((ROOT / f"crds/{name}.yaml").read_text())["spec"]["versions"]
    found = dict(choices(version["schema"]["openAPIV3Schema"]["properties"]["spec"]))
    assert {field: values for field, values in found.items() if not field.startswith(OF_THE_APPLICATION)} == dict(KINDS[name][1])


@pytest.mark.parametrize(
    ("parse", "field", "values", "spec"),
    [
        pytest.param(parse, field, values, spec, id=f"{name}-{field}")
        for name, (parse, known, spec) in KINDS.items()
        for field, values in known.items()
    ],
)
def test_another_value_is_refused(
    parse: Callable[[Mapping[str, Any]], object], field: str, values: tuple[str, ...], spec: dict[str, Any]
) -> None:
    """The definition in the cluster may be newer than the operator."""
    *outer, last = field.split(".")

    def with_value(value: str) -> dict[str, Any]:
        changed: dict[str, Any] = {**spec}
        inner = changed
        for part in outer:
            inner[part] = dict(inner.get(part) or {})
            inner = inner[part]
        inner[last] = value
        return changed

    for value in values:
        parse(with_value(value))
    with pytest.raises(InvalidSpecError, match=re.escape(f"spec.{field} 'Future' is not known") + f".*{', '.join(values)}$"):
        parse(with_value("Future"))
