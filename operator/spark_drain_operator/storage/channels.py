"""The two ConfigMaps through which operator and agent talk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_drain_store import Channel
from spark_drain_store.channel import config_map_names
from spark_drain_store.configmap import MANAGED_BY, ConfigMapStore
from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient, objects_path

__all__ = ["Channels", "Owners"]


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


class Channels:
    """Opens the channel of an application, and makes its ConfigMaps."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def open(self, namespace: str, kind: str, application: str) -> Channel:
        """Return the channel, whether or not its ConfigMaps exist."""
        requests, reports = config_map_names(application, kind)
        return Channel.over(ConfigMapStore(self._client, namespace, requests), ConfigMapStore(self._client, namespace, reports))

    def owners(self, namespace: str, kind: str, application: str, uid: str) -> Owners:
        """Return who owns the ConfigMaps of an application with such a uid."""
        another, complete = [], True
        for name in config_map_names(application, kind):
            try:
                body = self._client.request("GET", objects_path("v1", namespace, "configmaps", name))
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

    def ensure(self, namespace: str, kind: str, application: str, owner: Mapping[str, Any]) -> str:
        """Create what is missing of both ConfigMaps; they go with the application that owns them.

        Returns the version of the requests, known to be empty, where this call has created them; "" where they existed already, so that
        whoever decided without having seen them has to look again.

        Parameters
        ----------
        namespace, kind, application
            The application.
        owner
            Its owner reference.
        """
        path = objects_path("v1", namespace, "configmaps")
        created = {}
        names = config_map_names(application, kind)
        for name in names:
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": name,
                    "labels": MANAGED_BY,
                    "ownerReferences": [dict(owner)],
                },
            }
            try:
                created[name] = str(self._client.request("POST", path, body=body)["metadata"]["resourceVersion"])
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
                self._adopt(objects_path("v1", namespace, "configmaps", name), owner)
        return created.get(names[0], "")
