"""The health expressions of contrib/flux, by Flux's own evaluation."""

import json
from pathlib import Path
from typing import Any

import yaml
from spark_drain_operator.kinds.drain.reasons import Phase

from tests.gitops.conftest import answer
from tests.gitops.objects import application, application_states, drain
from tools.manifests import ROOT

EXAMPLE = ROOT / "contrib/flux/pipeline.yaml"
DRAIN, PIPELINE = yaml.safe_load_all(EXAMPLE.read_text())


def _status(folder: Path, kustomization: dict[str, Any], body: dict[str, Any]) -> str:
    path = folder / "kustomization.yaml"
    path.write_text(json.dumps(kustomization))
    return str(answer("flux-health", path, given=body)["status"])


def test_health_of_drains(tmp_path: Path) -> None:
    assert _status(tmp_path, DRAIN, drain(None)) == "InProgress", "as the API server stores a new one"
    for phase in Phase:
        wanted = ("Current" if phase.successful else "Failed") if phase.terminal else "InProgress"
        assert _status(tmp_path, DRAIN, drain(phase)) == wanted, phase
    assert _status(tmp_path, DRAIN, drain(Phase.FLUSHING, stalled=True)) == "InProgress"


def test_a_drain_is_judged_by_kstatus_where_there_are_no_expressions(tmp_path: Path) -> None:
    plain = {**DRAIN, "spec": {**DRAIN["spec"], "healthCheckExprs": PIPELINE["spec"]["healthCheckExprs"]}}
    assert _status(tmp_path, plain, drain(None)) == "InProgress"
    for phase in Phase:
        wanted = ("Current" if phase.successful else "Failed") if phase.terminal else "InProgress"
        assert _status(tmp_path, plain, drain(phase)) == wanted, phase
    assert _status(tmp_path, plain, drain(Phase.FLUSHING, stalled=True)) == "InProgress"


def test_health_of_applications(tmp_path: Path) -> None:
    ended = {
        "RUNNING": "Current",
        "COMPLETED": "Current",
        "SUSPENDED": "Current",
        "FAILED": "Failed",
        "FAILING": "Failed",
        "SUBMISSION_FAILED": "Failed",
    }
    for state in application_states():
        body = application(state, suspend=state == "SUSPENDED")
        assert _status(tmp_path, PIPELINE, body) == ended.get(state, "InProgress"), state
    assert _status(tmp_path, PIPELINE, application("SUSPENDED", suspend=False)) == "InProgress"
    assert _status(tmp_path, PIPELINE, {**application("RUNNING"), "status": {}}) == "InProgress"


def test_the_pipeline_waits_for_its_drain_at_the_same_revision() -> None:
    assert PIPELINE["spec"]["dependsOn"] == [{"name": DRAIN["metadata"]["name"]}]
    assert PIPELINE["spec"]["sourceRef"] == DRAIN["spec"]["sourceRef"], "else Flux does not compare revisions"
