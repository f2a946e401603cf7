"""Namespaces."""

from __future__ import annotations

from urllib.parse import quote

from spark_drain_store.kube_client import ApiError, KubeClient

__all__ = ["Namespaces"]


class Namespaces:
    """Looks at namespaces."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def is_terminating(self, name: str) -> bool:
        """Whether a namespace is being deleted; false where the operator may not look."""
        try:
            metadata = self._client.request("GET", f"/api/v1/namespaces/{quote(name, safe='')}")["metadata"]
        except ApiError as error:
            if error.status == 403:
                return False
            if error.absent:
                return True
            raise
        return bool(metadata.get("deletionTimestamp"))
