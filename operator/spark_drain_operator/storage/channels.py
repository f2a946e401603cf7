"""The two ConfigMaps through which operator and agent talk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spark_drain_store import Channel, Snapshot
from spark_drain_store.channel import config_map_names
from spark_drain_store.configmap import MANAGED_BY, ConfigMapStore
from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient, collection_path, objects_path
from spark_drain_store.topics import DRAIN, TopicStore, of_topic

from spark_drain_operator.storage.lists import LARGE_PAGE, objects_of
from spark_drain_operator.storage.results import COMPONENT_LABEL, RESULT
from spark_drain_operator.storage.watch_cache import Collection, WatchCache

__all__ = ["CONFIG_MAPS", "Channels", "Owners"]


@dataclass(frozen=True)
class Owners:
    """Of the ConfigMaps of one application.

    Parameters
    ----------
    another
        Names of those that will go with an application of another uid, which was deleted.
    complete
        Whether both exist and go with this application.
    """

    another: tuple[str, ...]
    complete: bool


def _is_watched(body: Mapping[str, Any]) -> bool:
    labels = body["metadata"].get("labels") or {}
    return MANAGED_BY.items() <= labels.items() and labels.get(COMPONENT_LABEL) != RESULT


CONFIG_MAPS = Collection(
    "v1",
    "configmaps",
    {"labelSelector": ",".join([*(f"{name}={value}" for name, value in MANAGED_BY.items()), f"{COMPONENT_LABEL}!={RESULT}"])},
    _is_watched,
)
"""Watched: of all applications, and no results, of which there may be thousands."""


class _WatchedStore(ConfigMapStore):
    """One ConfigMap that is read from the cache where it is there; where it is not, and its write shows whether that is so, as well."""

    def __init__(self, client: KubeClient, cache: WatchCache, namespace: str, name: str, *, untouched: bool) -> None:
        super().__init__(client, namespace, name)
        self._cache, self._key, self._untouched = cache, (CONFIG_MAPS.plural, namespace, name), untouched

    def read(self) -> Snapshot:
        """See `MetadataStore.read`."""
        known = self._cache.get(*self._key)
        if known is None and self._untouched and self._cache.lacks(*self._key):
            return Snapshot(version="", entries={})
        return super().read() if known is None else self._seen(known)

    def _seen(self, config_map: Mapping[str, Any]) -> Snapshot:
        self._cache.put(CONFIG_MAPS.plural, config_map)
        return super()._seen(config_map)


class Channels:
    """Opens the channel of an application, and makes its ConfigMaps."""

    def __init__(self, client: KubeClient, cache: WatchCache) -> None:
        self._client = client
        self._cache = cache

    def open(self, namespace: str, kind: str, application: str, *, untouched: bool = False) -> Channel:
        """Return the channel, whether or not its ConfigMaps exist.

        Parameters
        ----------
        namespace, kind, application
            The application.
        untouched
            Whether whoever reads it has written nothing to it yet: then a ConfigMap that the watch does not know is not asked for, since
            the first write creates it or conflicts.
        """
        requests, reports = (
            _WatchedStore(self._client, self._cache, namespace, name, untouched=untouched) for name in config_map_names(application, kind)
        )
        return Channel.over(requests, reports)

    def all_requests(self, namespace: str) -> Iterator[tuple[str, TopicStore, Snapshot]]:
        """Yield the namespace of each application, the store of its requests, and the drain notifications in it, as they are now."""
        suffix = config_map_names("")[0].rpartition("--")[2]
        for body in objects_of(self._client, collection_path("v1", namespace, "configmaps"), CONFIG_MAPS.query, page=LARGE_PAGE):
            metadata = body["metadata"]
            if metadata["name"].endswith(f"-{suffix}"):
                store = ConfigMapStore(self._client, metadata["namespace"], metadata["name"])
                whole = Snapshot(version=metadata["resourceVersion"], entries=body.get("data") or {})
                yield metadata["namespace"], TopicStore(store, DRAIN), of_topic(whole, DRAIN)

    def owners(self, namespace: str, kind: str, application: str, uid: str) -> Owners:
        """Return who owns the ConfigMaps of an application with such a uid."""
        another, complete = [], True
        for name in config_map_names(application, kind):
            try:
                body = self._cache.get(CONFIG_MAPS.plural, namespace, name)
                body = body or self._client.request("GET", objects_path("v1", namespace, "configmaps", name))
            except ApiError as error:
                if not error.absent:
                    raise
                complete = False
                continue
            owners = [owner["uid"] for owner in body["metadata"].get("ownerReferences") or [] if owner["kind"] == kind]
            complete = complete and uid in owners
            if owners and uid not in owners:
                another.append(name)
        return Owners(tuple(another), complete)

    def _adopt(self, path: str, owner: Mapping[str, Any]) -> None:
        """Give a ConfigMap an owner where it has none: an agent that outlived its application has made it."""
        metadata = self._client.request("GET", path)["metadata"]
        ours = MANAGED_BY.items() <= (metadata.get("labels") or {}).items()
        if ours and not metadata.get("ownerReferences"):
            change = {"metadata": {"resourceVersion": metadata["resourceVersion"], "ownerReferences": [dict(owner)]}}
            try:
                self._client.request("PATCH", path, body=change, content_type=MERGE_PATCH)
            except ApiError as error:
                if error.status != 403:  # where owners are guarded, only who may delete it may change them
                    raise

    def ensure(self, channel: Channel, namespace: str, kind: str, application: str, owner: Mapping[str, Any], *, requests: bool) -> None:
        """Let both ConfigMaps go with the application that owns them, and create that of the reports where it is missing.

        Parameters
        ----------
        channel
            Its next write to the requests creates their ConfigMap where that is missing, with the owner.
        namespace, kind, application
            The application.
        owner
            Its owner reference.
        requests
            Whether the ConfigMap of the requests is there.
        """
        names = config_map_names(application, kind)
        if requests:
            self._adopt(objects_path("v1", namespace, "configmaps", names[0]), owner)
        elif isinstance(channel.requests.whole, ConfigMapStore):
            channel.requests.whole.create_for(owner)
        metadata = {"name": names[1], "labels": MANAGED_BY, "ownerReferences": [dict(owner)]}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        try:
            created = self._client.request("POST", objects_path("v1", namespace, "configmaps"), body=body)
            self._cache.put(CONFIG_MAPS.plural, created)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            self._adopt(objects_path("v1", namespace, "configmaps", names[1]), owner)
