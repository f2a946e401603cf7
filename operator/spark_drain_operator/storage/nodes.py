"""Nodes, and Spark's pods on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient, cluster_path, collection_path

from spark_drain_operator.storage.lists import metadata_of
from spark_drain_operator.storage.pods import APP_LABEL, PAGE, PodPhases

__all__ = ["Node", "Nodes", "PodOnNode", "Role"]


class Role(StrEnum):
    """Values of the label ``spark-role``."""

    DRIVER = "driver"
    EXECUTOR = "executor"


@dataclass(frozen=True)
class PodOnNode:
    """A pod of a SparkApplication.

    Parameters
    ----------
    namespace, name, uid
        Which pod.
    application
        Name of its SparkApplication.
    role
        Driver or executor.
    terminating
        Whether it is being deleted.
    run_id
        Label ``spark-app-selector``: its run's ``spark.app.id``.
    executor_id
        Label ``spark-exec-id``; "" for a driver.
    node_uid
        Of the node that it is on.
    """

    namespace: str
    name: str
    uid: str
    application: str
    role: Role
    terminating: bool = False
    run_id: str = ""
    executor_id: str = ""
    node_uid: str = ""


@dataclass(frozen=True)
class Node:
    """A node as it is now.

    Parameters
    ----------
    uid
        Of this node, and of no later one of its name.
    cordoned
        Whether no new pods are placed on it that do not tolerate that.
    """

    uid: str
    cordoned: bool


class Nodes:
    """Reads and cordons nodes."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    def read(self, name: str) -> Node | None:
        """Return a node, None where there is none of that name."""
        try:
            body = self._client.request("GET", cluster_path("v1", "nodes", name))
            return Node(str(body["metadata"]["uid"]), cordoned=bool((body.get("spec") or {}).get("unschedulable")))
        except ApiError as error:
            if error.absent:
                return None
            raise

    def cordon(self, name: str, annotations: Mapping[str, str]) -> None:
        """Keep new pods off a node, and note something about that on it."""
        body = {"metadata": {"annotations": dict(annotations)}, "spec": {"unschedulable": True}}
        self._client.request("PATCH", cluster_path("v1", "nodes", name), body=body, content_type=MERGE_PATCH)

    def spark_pods(self, name: str, uid: str, namespaces: Iterable[str] = ("",)) -> tuple[PodOnNode, ...]:
        """Return the pods of SparkApplications on a node that may still run a container; the namespace "" means everywhere."""
        query = {
            "labelSelector": f"spark-role in ({Role.DRIVER},{Role.EXECUTOR}),{APP_LABEL},{APP_LABEL}!=",
            "fieldSelector": f"spec.nodeName={name},{PodPhases.ALIVE}",
        }
        return tuple(
            PodOnNode(
                namespace=metadata["namespace"],
                name=metadata["name"],
                uid=metadata["uid"],
                application=metadata["labels"][APP_LABEL],
                role=Role(metadata["labels"]["spark-role"]),
                terminating=bool(metadata.get("deletionTimestamp")),
                run_id=metadata["labels"].get("spark-app-selector", ""),
                executor_id=metadata["labels"].get("spark-exec-id", ""),
                node_uid=uid,
            )
            for namespace in namespaces
            for metadata in metadata_of(self._client, collection_path("v1", namespace, "pods"), query, page=PAGE)
        )
