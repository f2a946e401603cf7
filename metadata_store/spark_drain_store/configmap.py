"""A metadata store in a ConfigMap: what operator and driver agent share in a cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from spark_drain_store.kube_client import MERGE_PATCH, ApiError, ApiUnavailableError, KubeClient, WatchStream, objects_path
from spark_drain_store.protocol import ConflictError, EntryTooLargeError, MetadataStore, Snapshot, StoreError, StoreUnavailableError
from spark_drain_store.reentrant_event import ReentrantEvent

__all__ = ["MANAGED_BY", "ConfigMapStore", "open_config_maps"]

MANAGED_BY = {"app.kubernetes.io/managed-by": "spark-drain"}
"""Labels of every ConfigMap of the metadata store; the operator watches only these."""

_POLL_SECONDS = 15.0
_PAUSE_SECONDS = 2.0
_CREATE_ATTEMPTS = 5


class ConfigMapStore:
    """`MetadataStore` over one ConfigMap; its version is the ConfigMap's resourceVersion.

    Parameters
    ----------
    client
        The API server.
    namespace, name
        The ConfigMap. Where it does not exist, the first write creates it.
    """

    def __init__(self, client: KubeClient, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._collection = objects_path("v1", namespace, "configmaps")
        self._path = objects_path("v1", namespace, "configmaps", name)
        self._closed = ReentrantEvent()
        self._streams: set[WatchStream] = set()
        self._streams_lock = threading.RLock()  # a signal handler may close the store while its own thread does
        self._owners: list[dict[str, Any]] = []

    def read(self) -> Snapshot:
        """See `MetadataStore.read`."""
        try:
            return self._seen(self._client.request("GET", self._path))
        except ApiError as error:
            if error.absent:
                return Snapshot(version="", entries={})
            raise self._refused("read", error) from error
        except ApiUnavailableError as error:
            raise StoreUnavailableError(str(error)) from error

    def write(self, changes: Mapping[str, str | None], *, if_version: str | None = None) -> str:
        """See `MetadataStore.write`."""
        try:
            for _ in range(_CREATE_ATTEMPTS):
                if if_version == "":
                    return self._create(changes)
                try:
                    return self._patch(changes, if_version)
                except ApiError as error:
                    if not error.absent:
                        raise
                    if if_version is not None:
                        raise ConflictError(f"ConfigMap {self._namespace}/{self._name} has been deleted: read it again") from error
                    if all(value is None for value in changes.values()):
                        return ""  # nothing to remove, and nothing worth creating it for
                try:
                    return self._create(changes)
                except ConflictError:
                    continue  # somebody created it between the two requests
        except ApiError as error:
            if error.status == 409:
                raise ConflictError(f"ConfigMap {self._namespace}/{self._name} was changed by another writer: read it again") from error
            if error.status == 413 or (error.status == 422 and "Too long" in error.message):
                raise EntryTooLargeError(
                    f"ConfigMap {self._namespace}/{self._name} would exceed its limit ({error.message}): "
                    "remove finished drains with `drain cleanup`, or placements with `placement delete`"
                ) from error
            raise self._refused("write", error) from error
        except ApiUnavailableError as error:
            raise StoreUnavailableError(str(error)) from error
        raise ConflictError(f"ConfigMap {self._namespace}/{self._name} is created and deleted all the time: try again")

    def create_for(self, owner: Mapping[str, Any]) -> None:
        """Let the ConfigMap go with an owner, where the next write creates it."""
        self._owners = [dict(owner)]

    def _patch(self, changes: Mapping[str, str | None], if_version: str | None) -> str:
        body: dict[str, Any] = {"data": dict(changes)}
        if if_version is not None:
            body["metadata"] = {"resourceVersion": if_version}
        return self._seen(self._client.request("PATCH", self._path, body=body, content_type=MERGE_PATCH)).version

    def _create(self, changes: Mapping[str, str | None]) -> str:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            # One that went with its owner is not made again for another of that name: the garbage collector takes it.
            "metadata": {"name": self._name, "labels": MANAGED_BY, "ownerReferences": self._owners},
            "data": {key: value for key, value in changes.items() if value is not None},
        }
        try:
            return self._seen(self._client.request("POST", self._collection, body=body)).version
        except ApiError as error:
            if error.status == 409:
                raise ConflictError(f"ConfigMap {self._namespace}/{self._name} exists already: read it again") from error
            raise

    def watch(self, since: str, timeout: float) -> Snapshot | None:
        """See `MetadataStore.watch`; one watch request, and slow polling only where watching is not allowed."""
        deadline = time.monotonic() + timeout
        start, again = since, False
        while not self._closed.is_set():
            if not start:  # an absent ConfigMap has no version to watch from: take the collection's
                snapshot, start = self._list()
                if snapshot.version != since:
                    return snapshot
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return None
            asked_at = time.monotonic()
            found = self._next_event(start, since, remaining)
            if found is not None:
                return found
            start = ""
            at_once = time.monotonic() - asked_at < _PAUSE_SECONDS  # as while an API server shuts down
            if at_once and again:
                self._closed.wait(min(_PAUSE_SECONDS, remaining))
            again = at_once
        return None

    def _list(self) -> tuple[Snapshot, str]:
        try:
            listed = self._client.request("GET", self._collection, query={"fieldSelector": f"metadata.name={self._name}"})
        except ApiError as error:
            if error.status == 403:  # list may be forbidden where get is not
                return self.read(), ""
            raise self._refused("list", error) from error
        except ApiUnavailableError as error:
            raise StoreUnavailableError(str(error)) from error
        version, items = self._version(listed), listed.get("items") or []
        if not isinstance(items, list):
            raise self._unlike(listed, "its items are no list")
        return self._seen(items[0]) if items else Snapshot(version="", entries={}), version

    def _next_event(self, start: str, since: str, remaining: float) -> Snapshot | None:
        query = {"fieldSelector": f"metadata.name={self._name}", "resourceVersion": start}
        try:
            stream = self._client.watch(self._collection, query, remaining) if start else None
        except ApiError as error:
            if error.status == 410:
                return None
            if error.status != 403:
                raise self._refused("watch", error) from error
            stream = None
        except ApiUnavailableError as error:
            raise StoreUnavailableError(str(error)) from error
        if stream is None:
            self._closed.wait(min(remaining, _POLL_SECONDS))
            return None
        with self._streams_lock:
            self._streams.add(stream)
        try:
            if self._closed.is_set():
                return None
            for event in stream:
                if event.get("type") in ("ADDED", "MODIFIED"):
                    snapshot = self._seen(event.get("object"))
                    if snapshot.version != since:
                        return snapshot
                elif event.get("type") == "DELETED" and since:
                    return Snapshot(version="", entries={})
                elif event.get("type") == "ERROR":
                    return None
            return None
        finally:
            with self._streams_lock:
                self._streams.discard(stream)
            stream.close()

    def _seen(self, config_map: Any) -> Snapshot:
        version = self._version(config_map)
        owners, data = config_map["metadata"].get("ownerReferences") or [], config_map.get("data") or {}
        if not isinstance(owners, list) or any(not isinstance(owner, dict) or not owner.keys() >= _OF_AN_OWNER for owner in owners):
            raise self._unlike(config_map, "its metadata.ownerReferences are none")
        if not isinstance(data, dict) or any(not isinstance(value, str) for value in data.values()):
            raise self._unlike(config_map, "its data are no strings by name")
        self._owners = [{key: owner[key] for key in sorted(_OF_AN_OWNER)} for owner in owners]
        return Snapshot(version=version, entries=data)

    def _version(self, answer: Any) -> str:
        metadata = answer.get("metadata") if isinstance(answer, dict) else None
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        if not version:
            raise self._unlike(answer, "it has no metadata.resourceVersion")
        return str(version)

    def _unlike(self, answer: Any, why: str) -> StoreUnavailableError:
        """Return the error for what the API server does not answer, but a proxy before it may in its place."""
        return StoreUnavailableError(
            f"the answer about ConfigMap {self._namespace}/{self._name} is not one of the Kubernetes API: {why}: {str(answer)[:200]}"
        )

    def close(self) -> None:
        """See `MetadataStore.close`; the client stays open for others."""
        self._closed.set()
        with self._streams_lock:
            streams = list(self._streams)
        for stream in streams:
            stream.close()

    def _refused(self, verb: str, error: ApiError) -> StoreError:
        hint = f"; {_HINTS[error.status]}" if error.status in _HINTS else ""
        return StoreError(f"the API server refused to {verb} ConfigMap {self._namespace}/{self._name}: {error}{hint}")


_HINTS = {
    401: "it does not know these credentials, or they have expired: see the kubeconfig, or the service account's token",
    403: "grant the service account get, list, watch, create and patch on ConfigMaps",
}
_OF_AN_OWNER = frozenset(("apiVersion", "kind", "name", "uid"))
"""The rest of a reference asks for rights on the owner."""


def open_config_maps(namespace: str, names: tuple[str, str]) -> tuple[MetadataStore, MetadataStore]:
    """Open the request and the report store of an application with the credentials of this process.

    Parameters
    ----------
    namespace
        Where both ConfigMaps are.
    names
        Their names: requests, reports.

    Raises
    ------
    StoreUnavailableError
        There are no credentials.
    """
    try:
        client = KubeClient.from_environment()
    except ApiUnavailableError as error:
        raise StoreUnavailableError(str(error)) from error
    return ConfigMapStore(client, namespace, names[0]), ConfigMapStore(client, namespace, names[1])
