"""The programs that stand for Argo CD and Flux are as strict as those are."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.gitops.conftest import run

OBJECT = {
    "apiVersion": "sparkdrain.io/v1alpha1",
    "kind": "PipelineDrain",
    "metadata": {"name": "drain", "annotations": {}},
    "spec": {"queries": []},
    "status": {"phase": "Drained", "replicas": 3},
}


def lua(folder: Path, what: str, script: str, *options: str) -> Any:
    """Return what a script gives, or the error."""
    path = folder / "script.lua"
    path.write_text(script)
    done = run("argocd-lua", what, *options, path, given=OBJECT)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def test_a_health_script_sees_the_object(tmp_path: Path) -> None:
    script = 'return {status = "Healthy", message = obj.status.phase .. " " .. obj.status.replicas}'
    assert lua(tmp_path, "health", script) == {"status": "Healthy", "message": "Drained 3"}


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ('return {status = "Fine"}', "invalid health status"),
        ("return 1", "expect table output"),
        ("while true do end", "deadline"),
        ("return {", "syntax error"),
        ('return {status = string.upper("healthy")}', "non-table object(nil)"),
        ('return {status = ("Healthy"):lower()}', "non-table object(string)"),
        ("return {status = math.min(1, 2)}", "non-table object(nil)"),
        ('return {status = io.open("file")}', "non-table object(nil)"),
        ('return {status = require("os").getenv("HOME")}', "non-function object"),
        ("return {status = obj.nothing.there}", "non-table object(nil)"),
    ],
)
def test_what_is_no_health_script_in_argo_cd(tmp_path: Path, script: str, error: str) -> None:
    assert error in lua(tmp_path, "health", script)


def test_an_action_keeps_empty_objects_and_takes_parameters(tmp_path: Path) -> None:
    script = "obj.spec.approved = true; obj.spec.by = actionParams.by; return obj"
    (impact,) = lua(tmp_path, "action", script, "--param", "by=me")
    assert impact["operation"] == "patch"
    assert impact["resource"] == OBJECT | {"spec": {"queries": [], "approved": True, "by": "me"}}


def test_an_action_makes_other_objects(tmp_path: Path) -> None:
    script = 'return {{operation = "create", resource = {apiVersion = "v1", kind = "ConfigMap", metadata = {name = "a"}}}}'
    (impact,) = lua(tmp_path, "action", script)
    assert (impact["operation"], impact["resource"]["metadata"]) == ("create", {"name": "a"})
    assert "unsupported operation" in lua(tmp_path, "action", script.replace("create", "delete"))


def test_discovery_lists_actions(tmp_path: Path) -> None:
    assert lua(tmp_path, "discovery", "return {}") == []
    script = "return {suspend = {disabled = true}, approve = {}}"
    assert lua(tmp_path, "discovery", script) == [{"name": "approve"}, {"name": "suspend", "disabled": True}]


def flux(folder: Path, given: dict[str, Any], **expressions: str) -> Any:
    check = {"apiVersion": "sparkdrain.io/v1alpha1", "kind": "PipelineDrain", **expressions}
    body = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "spec": {"healthCheckExprs": [check]}}
    path = folder / "kustomization.yaml"
    path.write_text(yaml.safe_dump(body))
    done = run("flux-health", path, given=given)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def test_flux_asks_in_progress_then_failed_then_current(tmp_path: Path) -> None:
    assert flux(tmp_path, OBJECT, current="true")["status"] == "Current"
    assert flux(tmp_path, OBJECT, current="true", failed="true")["status"] == "Failed"
    assert flux(tmp_path, OBJECT, current="true", failed="true", inProgress="true")["status"] == "InProgress"
    assert flux(tmp_path, OBJECT, current="false")["status"] == "InProgress"
    old = OBJECT | {"metadata": {"name": "drain", "generation": 2}, "status": {"observedGeneration": 1}}
    assert flux(tmp_path, old, current="true")["status"] == "InProgress"


def test_a_field_that_is_missing_is_an_error_for_flux(tmp_path: Path) -> None:
    answer = flux(tmp_path, OBJECT, current="status.conditions.exists(c, c.type == 'Succeeded')")
    assert answer["status"] == "Unknown"
    assert "conditions" in answer["message"]


def test_another_kind_has_the_status_of_kstatus(tmp_path: Path) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
    assert flux(tmp_path, other, current="false")["status"] == "Current"


def test_expressions_that_do_not_parse_are_refused(tmp_path: Path) -> None:
    assert "failed to parse" in flux(tmp_path, OBJECT, current="status.phase ==")
