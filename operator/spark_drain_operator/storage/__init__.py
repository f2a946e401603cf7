"""Every request to the Kubernetes API, and nothing that decides."""

from __future__ import annotations

from dataclasses import dataclass

from spark_drain_store.kube_client import KubeClient

from spark_drain_operator import clock
from spark_drain_operator.storage.applications import ApplicationObjects
from spark_drain_operator.storage.budgets import Budgets
from spark_drain_operator.storage.channels import Channels
from spark_drain_operator.storage.events import EventRecorder
from spark_drain_operator.storage.namespaces import Namespaces
from spark_drain_operator.storage.nodes import Nodes
from spark_drain_operator.storage.own_objects import OwnObjects, Resource
from spark_drain_operator.storage.pods import Pods
from spark_drain_operator.storage.results import Results
from spark_drain_operator.storage.watch_cache import WatchCache

__all__ = ["Cluster"]


@dataclass(frozen=True)
class Cluster:
    """The API server by subject; what is watched is read from the cache."""

    client: KubeClient
    cache: WatchCache
    applications: ApplicationObjects
    budgets: Budgets
    channels: Channels
    events: EventRecorder
    namespaces: Namespaces
    nodes: Nodes
    pods: Pods
    results: Results

    @classmethod
    def over(cls, client: KubeClient, cache: WatchCache | None = None) -> Cluster:
        """Return all subjects over one client; without a cache nothing is watched, and everything asked for."""
        cache = cache or WatchCache()
        client.dated = clock.SERVER.tell
        return cls(
            client=client,
            cache=cache,
            applications=ApplicationObjects(client, cache),
            budgets=Budgets(client),
            channels=Channels(client, cache),
            events=EventRecorder(client),
            namespaces=Namespaces(client),
            nodes=Nodes(client),
            pods=Pods(client, cache),
            results=Results(client),
        )

    def objects(self, resource: Resource) -> OwnObjects:
        """Return the objects of one of the operator's own kinds."""
        return OwnObjects(self.client, resource, self.cache)
