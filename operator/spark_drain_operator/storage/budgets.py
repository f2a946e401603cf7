"""PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient, collection_path, objects_path

from spark_drain_operator.storage.lists import objects_of

__all__ = ["Budgets"]

_API_VERSION, _PLURAL = "policy/v1", "poddisruptionbudgets"
_PAGE = 100


class Budgets:
    """Lists and writes PodDisruptionBudgets."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def all(self, namespaces: Iterable[str]) -> list[dict[str, Any]]:
        """Return all budgets, whoever has made them; the namespace "" means everywhere."""
        found: list[dict[str, Any]] = []
        for namespace in namespaces:
            found += objects_of(self._client, collection_path(_API_VERSION, namespace, _PLURAL), {}, page=_PAGE)
        return found

    def create(self, body: Mapping[str, Any]) -> None:
        """Create a budget; raises `ApiError` 409 where there is one of that name."""
        self._client.request("POST", objects_path(_API_VERSION, body["metadata"]["namespace"], _PLURAL), body=dict(body))

    def select(self, body: Mapping[str, Any], selector: Mapping[str, Any]) -> None:
        """Have a budget hold for other pods."""
        self._client.request("PATCH", self._path(body), body={"spec": {"selector": dict(selector)}}, content_type=MERGE_PATCH)

    def delete(self, body: Mapping[str, Any]) -> None:
        """Delete a budget, unless it is gone, or another one has its name."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": body["metadata"]["uid"]}}
        try:
            self._client.request("DELETE", self._path(body), body=options)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    @staticmethod
    def _path(body: Mapping[str, Any]) -> str:
        return objects_path(_API_VERSION, body["metadata"]["namespace"], _PLURAL, body["metadata"]["name"])
