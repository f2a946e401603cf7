"""The objects that stand for applications, of whatever kind; what their fields mean is the adapters' business."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient, objects_path

from spark_drain_operator.storage.watch_cache import WatchCache

__all__ = ["ApplicationObjects", "always"]


def always(_: Mapping[str, Any]) -> bool:
    """Whatever the watch has told is too old."""
    return True


def _never(_: Mapping[str, Any]) -> bool:
    return False


class ApplicationObjects:
    """Reads, patches and deletes application objects by fully qualified resource, because both Spark operators use the same short names."""

    def __init__(self, client: KubeClient, cache: WatchCache) -> None:
        self._client = client
        self._cache = cache

    @staticmethod
    def _path(api_version: str, plural: str, namespace: str, name: str) -> str:
        return objects_path(api_version, namespace, plural, name)

    def get(
        self, api_version: str, plural: str, namespace: str, name: str, *, is_stale: Callable[[Mapping[str, Any]], bool] = _never
    ) -> dict[str, Any] | None:
        """Return the object as its watch has told it, or as it is now; None where it, or its CustomResourceDefinition, does not exist.

        Parameters
        ----------
        api_version, plural, namespace, name
            Which object.
        is_stale
            Whether what the watch has told may be too old.
        """
        known = self._cache.get(plural, namespace, name)
        if known is not None and not is_stale(known):
            return known
        try:
            found = self._client.request("GET", self._path(api_version, plural, namespace, name))
            self._cache.put(plural, found)
            return found
        except ApiError as error:
            if error.absent or (error.status == 404 and not self._served(api_version)):
                return None
            raise

    def _served(self, api_version: str) -> bool:
        """Ask again where a 404 may be of a proxy: the API server answers without words for a group that it does not serve."""
        try:
            self._client.request("GET", f"/apis/{api_version}")
        except ApiError as error:
            return error.status != 404
        return True

    def patch(self, api_version: str, plural: str, namespace: str, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Merge changes into the object and return what the server stored."""
        path = self._path(api_version, plural, namespace, name)
        stored = self._client.request("PATCH", path, body=dict(changes), content_type=MERGE_PATCH)
        self._cache.put(plural, stored)
        return stored

    def delete(self, api_version: str, plural: str, namespace: str, name: str, preconditions: Mapping[str, str]) -> None:
        """Delete the object if it has that uid and resourceVersion; `ApiError` 409 where it has not."""
        try:
            self._client.request(
                "DELETE",
                self._path(api_version, plural, namespace, name),
                body={"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": dict(preconditions), "propagationPolicy": "Background"},
            )
        except ApiError as error:
            if not error.absent:
                raise
