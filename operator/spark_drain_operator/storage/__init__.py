"""Every request to the Kubernetes API, and nothing that decides."""

from __future__ import annotations

from dataclasses import dataclass

from spark_drain_store.kube_client import KubeClient

from spark_drain_operator.storage.applications import ApplicationObjects
from spark_drain_operator.storage.channels import Channels
from spark_drain_operator.storage.events import EventRecorder
from spark_drain_operator.storage.namespaces import Namespaces
from spark_drain_operator.storage.nodes import Nodes
from spark_drain_operator.storage.own_objects import OwnObjects, Resource
from spark_drain_operator.storage.pods import Pods
from spark_drain_operator.storage.results import Results

__all__ = ["Cluster"]


@dataclass(frozen=True)
class Cluster:
    """The API server by subject."""

    client: KubeClient
    applications: ApplicationObjects
    channels: Channels
    events: EventRecorder
    namespaces: Namespaces
    nodes: Nodes
    pods: Pods
    results: Results

    @classmethod
    def over(cls, client: KubeClient) -> Cluster:
        """Return all subjects over one client."""
        return cls(
            client=client,
            applications=ApplicationObjects(client),
            channels=Channels(client),
            events=EventRecorder(client),
            namespaces=Namespaces(client),
            nodes=Nodes(client),
            pods=Pods(client),
            results=Results(client),
        )

    def objects(self, resource: Resource) -> OwnObjects:
        """Return the objects of one of the operator's own kinds."""
        return OwnObjects(self.client, resource)
