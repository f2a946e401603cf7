"""Pods of an application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from spark_drain_store.kube_client import KubeClient, objects_path

from spark_drain_operator.clock import parse_time
from spark_drain_operator.storage.lists import metadata_of, objects_of
from spark_drain_operator.storage.watch_cache import Collection, WatchCache

__all__ = ["APP_LABEL", "DRIVERS", "PAGE", "DriverPod", "PodName", "PodPhases", "Pods"]

PAGE = 100
"""How many pods are asked for at a time: each may have annotations of 256 KiB."""

APP_LABEL = "sparkoperator.k8s.io/app-name"
DRIVERS = Collection(
    "v1", "pods", {"labelSelector": f"spark-role=driver,{APP_LABEL}"}, index=lambda body: str(body["metadata"]["labels"].get(APP_LABEL, ""))
)
"""Watched; executors are not, since there may be ten thousand."""


class PodPhases(StrEnum):
    """Field selectors."""

    ALIVE = "status.phase!=Succeeded,status.phase!=Failed"
    """May run a container, now or later."""
    STARTED = f"{ALIVE},status.phase!=Pending"
    """May run a container now."""
    RUNNING = "status.phase=Running"


@dataclass(frozen=True)
class DriverPod:
    """A driver pod.

    Parameters
    ----------
    name, uid
        Which pod.
    run_id
        Label ``spark-app-selector``: the run's ``spark.app.id``.
    phase
        Of the pod.
    terminating
        Whether it is being deleted.
    running_since
        When its container started last, or None.
    created
        When the pod was made.
    """

    name: str
    uid: str
    run_id: str
    phase: str
    terminating: bool
    running_since: datetime | None
    created: datetime

    @property
    def alive(self) -> bool:
        """Whether a container of it may still run."""
        return self.phase not in ("Succeeded", "Failed")

    @property
    def serving(self) -> bool:
        """Whether it runs and is meant to go on."""
        return self.phase == "Running" and not self.terminating


@dataclass(frozen=True)
class PodName:
    """A pod of which only the metadata was read.

    Parameters
    ----------
    name
        Which pod.
    executor_id
        Label ``spark-exec-id``; "" for other pods.
    uid
        Of the pod.
    owners
        Kind and uid of each owner.
    run_id
        Label ``spark-app-selector``.
    terminating
        Whether it is being deleted.
    """

    name: str
    executor_id: str
    uid: str = ""
    owners: tuple[tuple[str, str], ...] = ()
    run_id: str = ""
    terminating: bool = False


class Pods:
    """Lists pods."""

    def __init__(self, client: KubeClient, cache: WatchCache) -> None:
        self._client = client
        self._cache = cache

    def drivers(self, namespace: str, application: str) -> tuple[DriverPod, ...]:
        """Return the driver pods that are labelled with an application, also ended ones, newest first."""
        return tuple(sorted(map(_driver, self._drivers(namespace, application)), key=lambda driver: driver.created, reverse=True))

    def _drivers(self, namespace: str, application: str) -> Iterable[Mapping[str, Any]]:
        items: Iterable[Mapping[str, Any]] | None = self._cache.together(DRIVERS.plural, namespace, application)
        if items is None:
            query = {"labelSelector": f"{APP_LABEL}={application},spark-role=driver"}
            items = objects_of(self._client, objects_path("v1", namespace, "pods"), query, page=PAGE)
        return items

    def labels(self, namespace: str, application: str) -> list[Mapping[str, str]]:
        """Return the labels of an application's drivers, and of one executor, which stands for the others."""
        query = {"labelSelector": f"{APP_LABEL}={application},spark-role=executor", "fieldSelector": str(PodPhases.ALIVE)}
        executor = next(iter(metadata_of(self._client, objects_path("v1", namespace, "pods"), query, page=1)), None)
        metadata = [body["metadata"] for body in self._drivers(namespace, application)] + ([executor] if executor is not None else [])
        return [item["labels"] for item in metadata]

    def names(self, namespace: str, selector: str, phases: PodPhases) -> tuple[PodName, ...]:
        """Return the pods of a label selector in some phases; metadata only, since there may be ten thousand."""
        query = {"labelSelector": selector, "fieldSelector": str(phases)}
        found: list[PodName] = []
        for metadata in metadata_of(self._client, objects_path("v1", namespace, "pods"), query, page=PAGE):
            owners = tuple((owner["kind"], owner["uid"]) for owner in metadata.get("ownerReferences") or [])
            labels, terminating = metadata.get("labels") or {}, bool(metadata.get("deletionTimestamp"))
            executor_id, run_id = labels.get("spark-exec-id", ""), labels.get("spark-app-selector", "")
            found.append(PodName(metadata["name"], executor_id, metadata["uid"], owners, run_id, terminating))
        return tuple(found)


def _driver(item: Mapping[str, Any]) -> DriverPod:
    metadata, status = item["metadata"], item.get("status") or {}
    starts = [
        parse_time(container["state"]["running"]["startedAt"])
        for container in status.get("containerStatuses") or []
        if ((container.get("state") or {}).get("running") or {}).get("startedAt")
    ]
    return DriverPod(
        name=metadata["name"],
        uid=metadata["uid"],
        run_id=(metadata.get("labels") or {}).get("spark-app-selector", ""),
        phase=status.get("phase", "Pending"),
        terminating=bool(metadata.get("deletionTimestamp")),
        running_since=max(starts) if starts else None,
        created=parse_time(metadata["creationTimestamp"]),
    )
