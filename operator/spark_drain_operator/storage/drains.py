"""PipelineDrain objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_drain_store.kube_client import JSON_PATCH, ApiError, KubeClient

__all__ = ["FINALIZER", "GROUP", "PLURAL", "VERSION", "DrainObjects"]

GROUP, VERSION, PLURAL = "sparkdrain.io", "v1alpha1", "pipelinedrains"
FINALIZER = f"{GROUP}/drain"
"""Held while a drain is active: deletion is a withdrawal first."""


class DrainObjects:
    """Reads and writes PipelineDrains; an absent one reads as None, and writing to it does nothing."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    @staticmethod
    def _collection(namespace: str) -> str:
        return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}"

    def get(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Return the object."""
        try:
            return self._client.request("GET", f"{self._collection(namespace)}/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def of_application(self, namespace: str, application: str) -> list[dict[str, Any]]:
        """Return all PipelineDrains of the application of that name, of whatever kind."""
        query = {"fieldSelector": f"spec.applicationRef.name={application}"}
        items: list[dict[str, Any]] = self._client.request("GET", self._collection(namespace), query=query).get("items") or []
        return items

    def write_status(self, body: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any] | None:
        """Replace the status of exactly the version that was read; raises `ApiError` 409 where it has changed since."""
        metadata = body["metadata"]
        try:
            return self._client.request(
                "PUT",
                f"{self._collection(metadata['namespace'])}/{metadata['name']}/status",
                body={**body, "status": dict(status)},
            )
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def set_finalizer(self, body: Mapping[str, Any], *, present: bool) -> dict[str, Any] | None:
        """Add or remove the operator's finalizer; other finalizers stay."""
        metadata = body["metadata"]
        others = [name for name in metadata.get("finalizers") or [] if name != FINALIZER]
        wanted = [*others, FINALIZER] if present else others
        # The version test keeps a finalizer that somebody else added between our read and this write.
        patch = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
            {"op": "add", "path": "/metadata/finalizers", "value": wanted},
        ]
        try:
            return self._client.request(
                "PATCH", f"{self._collection(metadata['namespace'])}/{metadata['name']}", body=patch, content_type=JSON_PATCH
            )
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def delete(self, body: Mapping[str, Any]) -> None:
        """Delete exactly this object, not a later one of the same name."""
        metadata = body["metadata"]
        try:
            self._client.request(
                "DELETE",
                f"{self._collection(metadata['namespace'])}/{metadata['name']}",
                body={"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": metadata["uid"]}},
            )
        except ApiError as error:
            if error.status not in (404, 409):
                raise
