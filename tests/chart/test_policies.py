"""The chart's admission policies on a real API server: tables of requests."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from spark_drain_operator.storage.channels import Channels
from spark_drain_operator.storage.results import Results
from spark_drain_store.kube_client import MERGE_PATCH, KubeClient

from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support import chart
from tests.support.apiserver import DRAINS, ApiServer, drain_body, service_account
from tests.support.policies import PROTECTED, await_protection, refused
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


@pytest.fixture
def operator(api_server: ApiServer, namespace: str, tmp_path: Path) -> Iterator[KubeClient]:
    """The operator's service account, where the chart is installed with its policies, which are in force."""
    with chart.installed(api_server, namespace, admissionPolicies={"protect": True}):
        client = KubeClient.from_kubeconfig(str(service_account(api_server, namespace, namespace, tmp_path)))
        eventually(lambda: refused(client, "POST", _config_maps(namespace), config_map("other")), "the policy is in force", 30)
        await_protection(api_server, namespace)
        yield client
        client.close()


def _config_maps(namespace: str, *name: str) -> str:
    return "/".join((f"/api/v1/namespaces/{namespace}/configmaps", *name))


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"a": "1"}}


OURS = {"app.kubernetes.io/managed-by": "spark-drain"}


def test_the_operator_writes_no_config_maps_but_its_own(api_server: ApiServer, operator: KubeClient, namespace: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": "no-uid"}
    Channels(operator).ensure(namespace, "SparkApplication", "app", owner)
    drain = api_server.client.request("POST", DRAINS.format(namespace), body=drain_body())
    Results(operator).write(drain, "drain-result", {"a": "1"})
    Results(operator).write(drain, "drain-result", {"a": "2"})
    for name, labels in (("settings", {}), ("app-agent-requests", {}), ("settings", OURS)):
        assert "may write only its own ConfigMaps" in refused(operator, "POST", _config_maps(namespace), config_map(name, **labels))
    api_server.client.request("POST", _config_maps(namespace), body=config_map("settings-result"))
    taken = {"metadata": {"labels": OURS}, "data": {"a": "2"}}
    assert "settings-result is none of them" in refused(operator, "PATCH", _config_maps(namespace, "settings-result"), taken)
    assert not refused(api_server.client, "PATCH", _config_maps(namespace, "settings-result"), taken), "others may write theirs"


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
        said = refused(api_server.client, method, path, change)
        assert (said == "") == granted, (state, method, change, said)
        assert (
            granted
            or 'Drain it first with a PipelineDrain, or do it all the same with the annotation sparkdrain.io/break-glass: "1"' in said
        )
        assert method == "DELETE" or not refused(operator, method, path, change), "the operator itself may"

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
    assert not refused(api_server.client, "DELETE", path)
