"""Admission policies of a real API server."""

from itertools import count
from typing import Any

from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient

from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually

PROTECTED = {"metadata": {"annotations": {"sparkdrain.io/protect": "true"}}}


_FROZEN = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {namespace}}}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{{apiGroups: [{group}], apiVersions: [{version}], operations: [{operation}], resources: ["*"]}}]
  matchConditions: [{{name: there, expression: "request.namespace == '{namespace}'"}}]
  validations: [{{expression: "false", message: "change freeze"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {namespace}}}
spec: {{policyName: {namespace}, validationActions: [Deny]}}
"""


def freeze(namespace: str, operation: str, group: str, version: str) -> str:
    """Return a policy that refuses an operation in a namespace, of the namespace's name."""
    return _FROZEN.format(namespace=namespace, operation=operation, group=group, version=version)


def refused(client: KubeClient, method: str, path: str, body: dict[str, Any] | None = None, *, dry_run: bool = False) -> str:
    """Return what the policy says, "" where the request is granted."""
    content_type = MERGE_PATCH if method == "PATCH" else "application/json"
    try:
        client.request(method, path, query={"dryRun": "All"} if dry_run else None, body=body, content_type=content_type)
    except ApiError as error:
        if "ValidatingAdmissionPolicy" not in error.message:
            raise
        return error.message
    return ""


def await_protection(server: ApiServer, namespace: str) -> None:
    """Wait until the policy that protects applications is in force, which takes a moment; leaves an application ``first``."""
    running = ScriptedApplication(server.client, namespace, "first").create()
    running.set_state("RUNNING")
    path = f"/apis/sparkoperator.k8s.io/v1beta2/namespaces/{namespace}/sparkapplications/first"
    server.client.request("PATCH", path, body=PROTECTED, content_type=MERGE_PATCH)
    images = (f"another:{number}" for number in count())
    eventually(lambda: refused(server.client, "PATCH", path, {"spec": {"image": next(images)}}), "applications are protected", 30)
