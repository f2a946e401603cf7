from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from demo import manifests
from demo.killing import reports_in
from devcluster.images.recipes import EXAMPLE
from examples.flights import v1, v2

IN_IMAGE = Path("/opt/examples")
CRD = yaml.safe_load((manifests.EXAMPLE.parent.parent / "crds" / "pipelinedrain.yaml").read_text())


def application(version: str) -> dict[str, Any]:
    (manifest,) = manifests.load(f"application-{version}")
    return manifest


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_an_application_names_files_that_are_in_the_image(version: str) -> None:
    spec = application(version)["spec"]
    files = [spec["mainApplicationFile"].removeprefix("local://"), spec["arguments"][0]]
    for file in files:
        assert (manifests.EXAMPLE.parent / Path(file).relative_to(IN_IMAGE)).is_file()
    assert (spec["image"], spec["suspend"]) == (EXAMPLE, False)


@pytest.mark.parametrize(("version", "program"), [("v1", v1), ("v2", v2)])
def test_a_program_takes_the_arguments_of_its_manifest(version: str, program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    added = ["--output=other", "--checkpoint=file:///other", "--idempotent"]
    manifest = manifests.application(version, "image:1", added, {"spark.x": "y"})
    monkeypatch.setattr("sys.argv", manifest["spec"]["arguments"])
    options = program.arguments()
    assert (options.output, options.checkpoint, options.idempotent) == ("other", "file:///other", True)
    assert manifest["spec"]["sparkConf"]["spark.x"] == "y"


def test_an_executor_too_many_needs_a_node_of_its_own() -> None:
    executor = manifests.application("v1", "image:1", [], {}, idle=1)["spec"]["executor"]
    assert executor["instances"] == application("v1")["spec"]["executor"]["instances"] + 1
    (term,) = executor["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"


def test_both_versions_are_one_application_with_one_checkpoint() -> None:
    first, second = application("v1"), application("v2")
    differing = {key for key in first["spec"] if first["spec"][key] != second["spec"][key]}
    assert first["metadata"] == second["metadata"]
    assert differing == {"arguments"}
    assert first["spec"]["arguments"][1:] == second["spec"]["arguments"][1:]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_drain_is_valid_and_names_the_application(version: str) -> None:
    (drain,) = manifests.load(f"drain-{version}")
    reference = drain["spec"]["applicationRef"]
    found = application(version)
    assert (reference["apiVersion"], reference["kind"], reference["name"]) == (
        found["apiVersion"],
        found["kind"],
        found["metadata"]["name"],
    )
    schema = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    jsonschema.validate(drain["spec"], {**schema, "additionalProperties": False})


def test_reports_are_found_in_what_kubectl_prints_of_the_config_map() -> None:
    line = r'{"drain-v1.a":"{\"state\":\"Flushing\",\"runs\":[\"r\"]}","other-v1.b":"{\"unknown\":1}"}'
    assert reports_in(line) == [{"state": "Flushing", "runs": ["r"]}]
    assert reports_in("\n") == []


@pytest.mark.parametrize(
    ("manifest", "patch", "result"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": 2, "b": {"c": 3}}, {"a": 2, "b": {"c": 3}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": 1}, {"b": {"c": None}}, {"a": 1, "b": {}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
    ],
    ids=str,
)
def test_a_merge_patch(manifest: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    before = repr(manifest)
    assert manifests.merged(manifest, patch) == result
    assert repr(manifest) == before
