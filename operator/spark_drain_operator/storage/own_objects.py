"""Objects of the operator's own kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spark_drain_store.kube_client import JSON_PATCH, ApiError, KubeClient, collection_path, objects_path

from spark_drain_operator.storage.lists import metadata_of, objects_of
from spark_drain_operator.storage.watch_cache import Collection, WatchCache

__all__ = ["GROUP", "UID", "VERSION", "OwnObjects", "Resource"]

GROUP, VERSION = "sparkdrain.io", "v1alpha1"

_PAGE = 20  # each may have a status of a megabyte and more
_EVERYTHING: Mapping[str, str] = {}

UID = f"{GROUP}/uid"
"""Annotation: the uid of the object that was begun, so that a copy of it, or one restored from a backup without its status, is known."""


@dataclass(frozen=True)
class Resource:
    """A kind of objects in the operator's API group.

    Parameters
    ----------
    kind, plural
        As the CustomResourceDefinition names it.
    finalizer
        Held while such an object is active: deletion is a withdrawal first.
    ended
        Values of ``status.phase``, a selectable field, of objects that have ended.
    stops
        Whether the application stands still while such an object is carried out, so that it goes before others.
    """

    kind: str
    plural: str
    finalizer: str
    ended: tuple[str, ...]
    stops: bool = True

    @property
    def active(self) -> str:
        """Field selector of the objects that have not ended."""
        return ",".join(f"status.phase!={phase}" for phase in self.ended)

    @property
    def collection(self) -> Collection:
        """What is watched of it."""
        return Collection(
            f"{GROUP}/{VERSION}",
            self.plural,
            {"fieldSelector": self.active},
            lambda body: (body.get("status") or {}).get("phase") not in self.ended,
            lambda body: str(body["metadata"]["uid"]),
        )


class OwnObjects:
    """Reads and writes objects of one kind; an absent one reads as None, and writing to it does nothing."""

    def __init__(self, client: KubeClient, resource: Resource, cache: WatchCache) -> None:
        self._client = client
        self._resource = resource
        self._cache = cache

    def _path(self, namespace: str, *rest: str) -> str:
        return objects_path(f"{GROUP}/{VERSION}", namespace, self._resource.plural, *rest)

    def get(self, namespace: str, name: str, *, fresh: bool = False) -> dict[str, Any] | None:
        """Return the object, as it is now where that is asked for."""
        known = None if fresh else self._cache.get(self._resource.plural, namespace, name)
        if known is not None:
            return known
        try:
            return self._kept(self._client.request("GET", self._path(namespace, name)))
        except ApiError as error:
            if error.absent:
                return None
            raise

    def _kept(self, body: dict[str, Any]) -> dict[str, Any]:
        self._cache.put(self._resource.plural, body)
        return body

    def confirm(self, body: Mapping[str, Any]) -> None:
        """Raise `ApiError` 409 where an object is not as it was read any more: another operator may have ended it."""
        metadata = body["metadata"]
        found = self.get(metadata["namespace"], metadata["name"], fresh=True)
        if found is None or found["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise ApiError(409, "Conflict", f"{self._resource.kind} {metadata['name']!r} has been changed since it was read")

    def name_of(self, namespace: str, application: str, uid: str) -> str | None:
        """Return the name of the object of that uid, None where none that refers to such an application has it; neither ever changes."""
        for name in self._cache.names(self._resource.plural, namespace, uid):
            return name
        query = {"fieldSelector": f"spec.applicationRef.name={application}"}
        found = metadata_of(self._client, self._path(namespace), query, page=_PAGE)
        return next((str(metadata["name"]) for metadata in found if metadata["uid"] == uid), None)

    def all(self, namespace: str, query: Mapping[str, str] = _EVERYTHING) -> Iterator[dict[str, Any]]:
        """Yield all objects of a namespace, or with "" of the cluster, that a query selects; there may be thousands."""
        path = collection_path(f"{GROUP}/{VERSION}", namespace, self._resource.plural)
        return objects_of(self._client, path, query, page=_PAGE)

    def labelled(self, selector: str, namespaces: Iterable[str] = ("",)) -> Iterator[dict[str, Any]]:
        """Yield all objects that a label selector names; the namespace "" means everywhere."""
        for namespace in namespaces:
            yield from self.all(namespace, {"labelSelector": selector})

    def create(self, body: Mapping[str, Any]) -> None:
        """Create an object, unless there is one of that name."""
        try:
            self._client.request("POST", self._path(body["metadata"]["namespace"]), body=dict(body))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    def write_status(self, body: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any] | None:
        """Replace the status of exactly the version that was read; raises `ApiError` 409 where it has changed since."""
        metadata = body["metadata"]
        try:
            return self._kept(
                self._client.request(
                    "PUT",
                    self._path(metadata["namespace"], metadata["name"], "status"),
                    body={**body, "status": dict(status)},
                )
            )
        except ApiError as error:
            if error.absent:
                self._cache.remove(self._resource.plural, body)
                return None
            raise

    def holds_finalizer(self, body: Mapping[str, Any]) -> bool:
        """Whether the object carries the operator's finalizer."""
        return self._resource.finalizer in (body["metadata"].get("finalizers") or [])

    def set_finalizer(self, body: Mapping[str, Any], *, present: bool) -> dict[str, Any] | None:
        """Add or remove the operator's finalizer; other finalizers stay. With the finalizer goes the annotation `UID`."""
        metadata = body["metadata"]
        others = [name for name in metadata.get("finalizers") or [] if name != self._resource.finalizer]
        wanted = [*others, self._resource.finalizer] if present else others
        # The version test keeps a finalizer that somebody else added between our read and this write.
        patch = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
            {"op": "add", "path": "/metadata/finalizers", "value": wanted},
        ]
        if present:
            annotations = {**(metadata.get("annotations") or {}), UID: metadata["uid"]}
            patch.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
        try:
            path = self._path(metadata["namespace"], metadata["name"])
            return self._kept(self._client.request("PATCH", path, body=patch, content_type=JSON_PATCH))
        except ApiError as error:
            if error.absent:
                self._cache.remove(self._resource.plural, body)
                return None
            if error.status == 422:  # the answer to a test that fails as well as to what is invalid
                self.confirm(body)
            raise

    def delete(self, body: Mapping[str, Any]) -> None:
        """Delete exactly this object, not a later one of the same name."""
        metadata = body["metadata"]
        try:
            self._client.request(
                "DELETE",
                self._path(metadata["namespace"], metadata["name"]),
                body={"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": metadata["uid"]}},
            )
        except ApiError as error:
            if error.status not in (404, 409):
                raise
