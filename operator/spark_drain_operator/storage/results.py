"""The ConfigMap that keeps what a drain has found out, after application and notification are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_drain_store.configmap import MANAGED_BY
from spark_drain_store.kube_client import ApiError, KubeClient, objects_path

__all__ = ["COMPONENT_LABEL", "RESULT", "ResultNameTakenError", "Results"]

COMPONENT_LABEL, RESULT = "app.kubernetes.io/component", "result"
_LABELS = {**MANAGED_BY, COMPONENT_LABEL: RESULT}


class ResultNameTakenError(Exception):
    """A ConfigMap of the result's name belongs to somebody else."""


class Results:
    """Writes result ConfigMaps."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def write(self, drain: Mapping[str, Any], name: str, data: Mapping[str, str]) -> None:
        """Create or replace the result of a PipelineDrain, which owns it.

        Raises
        ------
        ResultNameTakenError
            The ConfigMap exists and is not this drain's.
        """
        metadata = drain["metadata"]
        collection = objects_path("v1", metadata["namespace"], "configmaps")
        path = objects_path("v1", metadata["namespace"], "configmaps", name)
        owner = {
            "apiVersion": drain["apiVersion"],
            "kind": drain["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": False,
        }
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": _LABELS, "ownerReferences": [owner]},
            "data": dict(data),
        }
        try:
            self._client.request("POST", collection, body=body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            present = self._client.request("GET", path)
            owners = [item["uid"] for item in present["metadata"].get("ownerReferences") or []]
            if metadata["uid"] not in owners:
                raise ResultNameTakenError(name) from error
            if present.get("data") != dict(data):
                body["metadata"] = {**present["metadata"]}
                self._client.request("PUT", path, body=body)
