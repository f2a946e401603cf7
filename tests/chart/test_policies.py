"""The chart's admission policies on a real API server: tables of requests."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from spark_drain_operator.storage import Cluster
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
        eventually(
            lambda: refused(client, "POST", _config_maps(namespace), config_map("other"), dry_run=True), "the policy is in force", 30
        )
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
    channels = Cluster.over(operator).channels
    channel = channels.open(namespace, "SparkApplication", "app")
    channels.ensure(channel, namespace, "SparkApplication", "app", owner, requests=False)
    channel.requests.write({"a": "1"}, if_version="")
    drain = api_server.client.request("POST", DRAINS.format(namespace), body=drain_body())
    Results(operator).write(drain, "drain-result", {"a": "1"})
    Results(operator).write(drain, "drain-result", {"a": "2"})
    for name, labels in (("settings", {}), ("app-agent-requests", {}), ("settings", OURS)):
        assert "may write only its own ConfigMaps" in refused(operator, "POST", _config_maps(namespace), config_map(name, **labels))
    api_server.client.request("POST", _config_maps(namespace), body=config_map("settings-result"))
    taken = {"metadata": {"labels": OURS}, "data": {"a": "2"}}
    assert "settings-result is none of them" in refused(operator, "PATCH", _config_maps(namespace, "settings-result"), taken)
    assert not refused(api_server.client, "PATCH", _config_maps(namespace, "settings-result"), taken), "others may write theirs"


# What else changes with `suspend` where webhooks complete the object first: kubeflow's own adds empty fields, and to an application without
# a state its defaults.
METADATA = {"labels": {"added": "by-a-webhook"}, "annotations": {"example.com/added": "by-a-webhook"}}
WITH_EMPTY_FIELDS: dict[str, Any] = {"metadata": METADATA, "spec": {"suspend": True, "deps": {}, "restartPolicy": {}}}
WITH_DEFAULTS: dict[str, Any] = {
    "metadata": METADATA,
    "spec": {
        "suspend": True,
        "mode": "cluster",
        "deps": {},
        "restartPolicy": {"type": "Never"},
        "driver": {"memory": "1g"},
        "executor": {"cores": 1, "memory": "1g"},
    },
}
IMAGE = {"spec": {"image": "another"}}
# state, request, change, whether it is granted
REQUESTS: list[tuple[str, str, dict[str, Any] | None, bool]] = [
    ("RUNNING", "PATCH", IMAGE, False),
    ("RUNNING", "PATCH", {"spec": {"executor": {"instances": 3}}}, False),
    ("RUNNING", "PATCH", {"spec": {"arguments": ["added"]}}, False),
    ("RUNNING", "PATCH", {"spec": {"image": None}}, False),
    ("RUNNING", "PATCH", {"spec": {"suspend": True}}, True),
    ("RUNNING", "PATCH", WITH_EMPTY_FIELDS, True),
    ("RUNNING", "PATCH", WITH_DEFAULTS, False),
    ("RUNNING", "PATCH", {"spec": {"executor": {"memory": "1g"}}}, False),
    ("RUNNING", "PATCH", {"spec": {"restartPolicy": {"type": "Never"}}}, False),
    ("RUNNING", "PATCH", {"spec": {"timeToLiveSeconds": 60}}, True),
    ("RUNNING", "PATCH", {"spec": {"suspend": True, "image": "another"}}, False),
    ("RUNNING", "PATCH", {"metadata": {"labels": {"team": "other"}}}, True),
    ("RUNNING", "PATCH", {"metadata": {"annotations": {"sparkdrain.io/protect": None}}}, True),
    ("RUNNING", "PATCH", {"spec": {"image": "another"}, "metadata": {"annotations": {"sparkdrain.io/protect": None}}}, False),
    ("RUNNING", "PATCH", {"spec": {"image": "another"}, "metadata": {"annotations": {"sparkdrain.io/break-glass": "{uid}/1"}}}, True),
    ("RUNNING", "PATCH", {"spec": {"image": "another"}, "metadata": {"annotations": {"sparkdrain.io/break-glass": "{uid}/7"}}}, False),
    ("RUNNING", "PATCH", {"spec": {"image": "another"}, "metadata": {"annotations": {"sparkdrain.io/break-glass": "1"}}}, False),
    ("RUNNING", "DELETE", None, False),
    ("SUBMITTED", "DELETE", None, False),
    ("SUSPENDED", "DELETE", None, True),
    ("SUSPENDED", "PATCH", IMAGE, True),
    ("COMPLETED", "PATCH", IMAGE, True),
    ("", "PATCH", IMAGE, True),
]


def test_a_protected_application_that_runs_is_not_ended(api_server: ApiServer, operator: KubeClient, namespace: str) -> None:
    for number, (state, method, change, granted) in enumerate(REQUESTS):
        application, path = protected(api_server, namespace, f"app-{number}", state)
        uid = application.body()["metadata"]["uid"]
        body = None if change is None else json.loads(json.dumps(change).replace("{uid}", uid))
        said = refused(api_server.client, method, path, body)
        assert (said == "") == granted, (state, method, change, said)
        assert granted or f'do it all the same with the annotation sparkdrain.io/break-glass: "{uid}/1"' in said


def protected(server: ApiServer, namespace: str, name: str, state: str) -> tuple[ScriptedApplication, str]:
    """Make an application in a state; returns its path as well."""
    application = ScriptedApplication(server.client, namespace, name).create()
    path = f"/apis/sparkoperator.k8s.io/v1beta2/namespaces/{namespace}/sparkapplications/{name}"
    server.client.request("PATCH", path, body=PROTECTED, content_type=MERGE_PATCH)
    application.set_state(state)
    return application, path


def test_self_heal_is_refused_and_its_diff_is_not(api_server: ApiServer, operator: KubeClient, namespace: str) -> None:
    application, path = protected(api_server, namespace, "app", "RUNNING")
    healed = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "app"},
        "spec": {"image": "git"},
    }

    def argo(*options: str) -> "subprocess.CompletedProcess[str]":
        apply = [api_server.kubectl, "apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller"]
        return subprocess.run(
            [*apply, *options, "-n", namespace, "-f", "-"],
            input=yaml.safe_dump(healed),
            capture_output=True,
            text=True,
            env=api_server.environment(),
            check=False,
        )

    diff, heal = argo("--dry-run=server"), argo()
    assert diff.returncode == 0, diff.stderr
    assert heal.returncode != 0
    assert "Drain it first" in heal.stderr
    metadata = application.body()["metadata"]
    annotated = {"metadata": {"annotations": {"sparkdrain.io/break-glass": f"{metadata['uid']}/{metadata['generation']}"}}}
    api_server.client.request("PATCH", path, body=annotated, content_type=MERGE_PATCH)
    assert not refused(api_server.client, "DELETE", path)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"image": "another"}},
        {"spec": {"driver": {"serviceAccount": "another"}}},
        {"spec": {"suspend": True, "mainApplicationFile": "local:///other.py"}},
        {"spec": {"arguments": ["added"]}},
        {"spec": {"image": None}},
        {"metadata": {"annotations": None}},
        {"metadata": {"annotations": {"sparkdrain.io/protect": "another"}}},
        {"metadata": {"annotations": {"sparkdrain.io/break-glass": "by the operator"}}},
        {"spec": {"deps": {"pyFiles": ["local:///other.py"]}}},
        {"spec": {"driver": {"env": [{"name": "A", "value": "1"}]}}},
        {"spec": {"restartPolicy": {"type": "Always"}}},
        {"spec": {"executor": {"memory": "64g"}}},
        {"spec": {"driver": {"cores": 8}}},
        {"spec": {"dynamicAllocation": {"enabled": True}}},
        {"metadata": {"finalizers": ["example.com/another"]}},
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone"}]}},
    ],
    ids=str,
)
def test_the_operator_changes_nothing_of_an_application_but_suspend(
    api_server: ApiServer, operator: KubeClient, namespace: str, change: dict[str, Any]
) -> None:
    _, path = protected(api_server, namespace, "app", "SUSPENDED")
    eventually(lambda: "nothing of a SparkApplication but spec.suspend" in refused(operator, "PATCH", path, change), "it is refused", 30)
    assert not refused(operator, "PATCH", path, WITH_DEFAULTS)
    assert not refused(api_server.client, "PATCH", path, change), "others may"


def test_a_protected_namespace_is_not_deleted(api_server: ApiServer, operator: KubeClient) -> None:
    path = "/api/v1/namespaces/protected"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "protected", **PROTECTED["metadata"]}}
    api_server.client.request("POST", "/api/v1/namespaces", body=body)
    assert "Drain them first, then remove the annotation" in eventually(
        lambda: refused(api_server.client, "DELETE", path), "the namespace is protected", 30
    )
    api_server.client.request("PATCH", path, body={"metadata": {"annotations": None}}, content_type=MERGE_PATCH)
    assert not refused(api_server.client, "DELETE", path)
