"""The chart's admission policies on a real API server: tables of requests."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from spark_drain_operator.storage.channels import Channels
from spark_drain_operator.storage.results import Results
from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient

from devcluster import gobuild
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import DRAINS, ROOT, ApiServer, drain_body, service_account
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver

PROTECTED = {"metadata": {"annotations": {"sparkdrain.io/protect": "true"}}}


@pytest.fixture
def operator(api_server: ApiServer, namespace: str, tmp_path: Path) -> Iterator[KubeClient]:
    """The operator's service account, where the chart is installed with its policies, which are in force."""
    helm = gobuild.build(gobuild.HELM) / "helm"
    values = {"crds": {"enabled": False}, "fullnameOverride": namespace, "admissionPolicies": {"protect": True}}
    command = [str(helm), "template", "spark-drain", str(ROOT / "charts/spark-drain"), "--namespace", namespace, "--values", "-"]
    manifests = subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=True).stdout
    api_server.run_kubectl("apply", "-f", "-", text=manifests)
    client = KubeClient.from_kubeconfig(str(service_account(api_server, namespace, namespace, tmp_path)))
    running = ScriptedApplication(api_server.client, namespace, "first").create()
    running.set_state("RUNNING")
    path = f"/apis/sparkoperator.k8s.io/v1beta2/namespaces/{namespace}/sparkapplications/first"
    api_server.client.request("PATCH", path, body=PROTECTED, content_type=MERGE_PATCH)
    eventually(lambda: _refused(client, "POST", _config_maps(namespace), config_map("other")), "the policy is in force", 30)
    change = {"spec": {"image": "another"}}
    eventually(lambda: _refused(api_server.client, "PATCH", path, change), "the other policy is in force", 30)
    yield client
    client.close()
    api_server.run_kubectl("delete", "--wait=false", "-f", "-", text=manifests)


def _config_maps(namespace: str, *name: str) -> str:
    return "/".join((f"/api/v1/namespaces/{namespace}/configmaps", *name))


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"a": "1"}}


def _refused(client: KubeClient, method: str, path: str, body: dict[str, Any] | None = None) -> str:
    """Return what the policy says, "" where the request is granted; all are dry runs."""
    content_type = MERGE_PATCH if method == "PATCH" else "application/json"
    try:
        client.request(method, path, query={"dryRun": "All"}, body=body, content_type=content_type)
    except ApiError as error:
        if "ValidatingAdmissionPolicy" not in error.message:
            raise
        return error.message
    return ""


OURS = {"app.kubernetes.io/managed-by": "spark-drain"}


def test_the_operator_writes_no_config_maps_but_its_own(api_server: ApiServer, operator: KubeClient, namespace: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": "no-uid"}
    Channels(operator).ensure(namespace, "SparkApplication", "app", owner)
    drain = api_server.client.request("POST", DRAINS.format(namespace), body=drain_body())
    Results(operator).write(drain, "drain-result", {"a": "1"})
    Results(operator).write(drain, "drain-result", {"a": "2"})
    for name, labels in (("settings", {}), ("app-agent-requests", {}), ("settings", OURS)):
        assert "may write only its own ConfigMaps" in _refused(operator, "POST", _config_maps(namespace), config_map(name, **labels))
    api_server.client.request("POST", _config_maps(namespace), body=config_map("settings-result"))
    taken = {"metadata": {"labels": OURS}, "data": {"a": "2"}}
    assert "settings-result is none of them" in _refused(operator, "PATCH", _config_maps(namespace, "settings-result"), taken)
    assert not _refused(api_server.client, "PATCH", _config_maps(namespace, "settings-result"), taken), "others may write theirs"


IMAGE = {"spec": {"image": "another"}}
# state, request, change, whether it is granted
REQUESTS: list[tuple[str, str, dict[str, Any] | None, bool]] = [
    ("RUNNING", "PATCH", IMAGE, False),
    ("RUNNING", "PATCH", {"spec": {"executor": {"instances": 3}}}, False),
    ("RUNNING", "PATCH", {"spec": {"arguments": ["added"]}}, False),
    ("RUNNING", "PATCH", {"spec": {"image": None}}, False),
    ("RUNNING", "PATCH", {"spec": {"suspend": True}}, True),
    ("RUNNING", "PATCH", {"spec": {"timeToLiveSeconds": 60}}, True),
    ("RUNNING", "PATCH", {"spec": {"suspend": True, "image": "another"}}, False),
    ("RUNNING", "PATCH", {"metadata": {"labels": {"team": "other"}}}, True),
    ("RUNNING", "PATCH", {"metadata": {"annotations": {"sparkdrain.io/protect": None}}}, True),
    ("RUNNING", "PATCH", {"spec": {"image": "another"}, "metadata": {"annotations": {"sparkdrain.io/protect": None}}}, False),
    ("RUNNING", "PATCH", {"spec": {"image": "another"}, "metadata": {"annotations": {"sparkdrain.io/break-glass": "1"}}}, True),
    ("RUNNING", "PATCH", {"spec": {"image": "another"}, "metadata": {"annotations": {"sparkdrain.io/break-glass": "7"}}}, False),
    ("RUNNING", "DELETE", None, False),
    ("SUBMITTED", "DELETE", None, False),
    ("SUSPENDED", "DELETE", None, True),
    ("SUSPENDED", "PATCH", IMAGE, True),
    ("COMPLETED", "PATCH", IMAGE, True),
    ("", "PATCH", IMAGE, True),
]


def test_a_protected_application_that_runs_is_not_ended(api_server: ApiServer, operator: KubeClient, namespace: str) -> None:
    application = ScriptedApplication(api_server.client, namespace).create()
    path = f"/apis/sparkoperator.k8s.io/v1beta2/namespaces/{namespace}/sparkapplications/app"
    api_server.client.request("PATCH", path, body=PROTECTED, content_type=MERGE_PATCH)
    for state, method, change, granted in REQUESTS:
        application.set_state(state)
        said = _refused(api_server.client, method, path, change)
        assert (said == "") == granted, (state, method, change, said)
        assert (
            granted
            or 'Drain it first with a PipelineDrain, or do it all the same with the annotation sparkdrain.io/break-glass: "1"' in said
        )
        assert method == "DELETE" or not _refused(operator, method, path, change), "the operator itself may"

    application.set_state("RUNNING")
    healed = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "app"},
        "spec": {"image": "git"},
    }
    done = subprocess.run(
        [
            api_server.kubectl,
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=argocd-controller",
            "-n",
            namespace,
            "-f",
            "-",
        ],
        input=yaml.safe_dump(healed),
        capture_output=True,
        text=True,
        env=api_server.environment(),
        check=False,
    )
    assert done.returncode != 0
    assert "Drain it first" in done.stderr, "self-heal of another image"
    annotated = {"metadata": {"annotations": {"sparkdrain.io/break-glass": str(application.body()["metadata"]["generation"])}}}
    api_server.client.request("PATCH", path, body=annotated, content_type=MERGE_PATCH)
    assert not _refused(api_server.client, "DELETE", path)
