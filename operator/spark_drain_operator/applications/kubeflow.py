"""SparkApplications of the kubeflow spark-operator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Set
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from spark_drain_store.kube_client import FIELD_MANAGER, ApiError

from spark_drain_operator.applications.protocol import Activity, Application, SuspendNotStoredError
from spark_drain_operator.clock import read_time
from spark_drain_operator.storage import Cluster, watch_cache
from spark_drain_operator.storage.applications import always
from spark_drain_operator.storage.pods import APP_LABEL, PodName, PodPhases

__all__ = ["KubeflowAdapter", "activity_of"]

_T = TypeVar("_T")

_ATTEMPTS = 20
_IGNORED = frozenset({"suspend", "timeToLiveSeconds"})
"""Fields of the spec whose changes do not end a running driver."""
_NOTHING: tuple[object, ...] = (None, {}, [])
_ACTIVITIES = {
    "": Activity.STARTING,
    "SUBMITTED": Activity.STARTING,
    "PENDING_RERUN": Activity.STARTING,
    "SUBMISSION_FAILED": Activity.STARTING,
    "INVALIDATING": Activity.STARTING,
    "RESUMING": Activity.STARTING,
    "RUNNING": Activity.RUNNING,
    "UNKNOWN": Activity.RUNNING,
    "SUCCEEDING": Activity.STOPPING,
    "FAILING": Activity.STOPPING,
    "SUSPENDING": Activity.STOPPING,
    "SUSPENDED": Activity.SUSPENDED,
    "COMPLETED": Activity.ENDED,
    "FAILED": Activity.ENDED,
}


def activity_of(state: str, *, suspend_requested: bool) -> Activity:
    """Return what a state means; a state of a later version counts as starting, which is waited for."""
    activity = _ACTIVITIES.get(state, Activity.STARTING)
    if activity is Activity.SUSPENDED and not suspend_requested:
        return Activity.STARTING  # resumed, and the operator has not noticed yet
    if state == "" and suspend_requested:
        return Activity.SUSPENDED  # created suspended
    return activity


def _digest(spec: Mapping[str, Any]) -> str:
    counted = _said({name: value for name, value in spec.items() if name not in _IGNORED})
    return hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()[:32]


def _changed(metadata: Mapping[str, Any]) -> datetime | None:
    if metadata["generation"] == 1:
        return None
    managers = metadata.get("managedFields") or []
    times = [read_time(item.get("time")) for item in managers if "f:spec" in (item.get("fieldsV1") or {}) and not item.get("subresource")]
    return max(filter(None, times), default=None)


def _suspended_by_others(metadata: Mapping[str, Any]) -> bool:
    managers = [
        item.get("manager")
        for item in metadata.get("managedFields") or []
        if "f:suspend" in ((item.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    return any(manager != FIELD_MANAGER for manager in managers)


def _may_be_before(runs: Set[str], body: Mapping[str, Any]) -> bool:
    """Whether an application's spec may be older than that of one of the runs: it is not where its status names the run."""
    named = (body.get("status") or {}).get("sparkApplicationId")
    return not runs <= {named}


def _said(value: Any) -> Any:
    """Return a value without what its operator's webhook adds and means nothing."""
    if isinstance(value, dict):
        return {name: said for name, item in value.items() if (said := _said(item)) not in _NOTHING}
    return [_said(item) for item in value] if isinstance(value, list) else value


class KubeflowAdapter:
    """`ApplicationAdapter` of ``sparkoperator.k8s.io/v1beta2``.

    Its state SUSPENDED is set right after the driver's deletion was asked for, up to the whole grace period before the driver has
    ended, and says nothing about executors; hence `left_over`.
    """

    api_version = "sparkoperator.k8s.io/v1beta2"
    kind = "SparkApplication"
    _plural = "sparkapplications"
    watched = watch_cache.Collection(api_version, _plural)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @staticmethod
    def _selector(name: str) -> str:
        return f"{APP_LABEL}={name}"

    def observe(self, namespace: str, name: str, known_runs: Collection[str] = ()) -> Application | None:
        """See `ApplicationAdapter.observe`."""
        # In this order: a driver that is seen was not started with a later spec than the one that is read.
        drivers = self._cluster.pods.drivers(namespace, name)
        runs = {driver.run_id for driver in drivers if driver.alive}.difference(known_runs)  # the watches do not keep that order
        is_stale = partial(_may_be_before, runs)
        body = self._cluster.applications.get(self.api_version, self._plural, namespace, name, is_stale=is_stale)
        if body is None:
            return None
        status = body.get("status") or {}
        state = (status.get("applicationState") or {}).get("state") or ""
        suspend = bool((body.get("spec") or {}).get("suspend"))
        return Application(
            name=name,
            uid=body["metadata"]["uid"],
            version=body["metadata"]["resourceVersion"],
            generation=body["metadata"]["generation"],
            spec_changed=_changed(body["metadata"]),
            spec_digest=_digest(body.get("spec") or {}),
            deleted=bool(body["metadata"].get("deletionTimestamp")),
            state=state,
            activity=activity_of(state, suspend_requested=suspend),
            suspend_requested=suspend,
            drivers=drivers,
            suspended_by_others=suspend and _suspended_by_others(body["metadata"]),
        )

    def owner_reference(self, application: Application) -> Mapping[str, Any]:
        """See `ApplicationAdapter.owner_reference`."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": application.name,
            "uid": application.uid,
            "controller": False,
            "blockOwnerDeletion": False,
        }

    def alive(self, namespace: str, run_id: str) -> tuple[PodName, ...]:
        """See `ApplicationAdapter.alive`."""
        return self._cluster.pods.names(namespace, f"spark-app-selector={run_id}", PodPhases.ALIVE)

    def running_executors(self, namespace: str, run_id: str) -> tuple[PodName, ...]:
        """See `ApplicationAdapter.running_executors`."""
        return self._cluster.pods.names(namespace, f"spark-role=executor,spark-app-selector={run_id}", PodPhases.RUNNING)

    def suspend(self, namespace: str, application: Application) -> None:
        """See `ApplicationAdapter.suspend`; changes no other field, since any other spec change makes the operator run it again."""

        if not self._set_suspend(namespace, application, wanted=True)["spec"].get("suspend"):
            raise SuspendNotStoredError(application.name)

    def resume(self, namespace: str, application: Application) -> bool:
        """See `ApplicationAdapter.resume`."""
        return not self._set_suspend(namespace, application, wanted=False)["spec"].get("suspend")

    def _set_suspend(self, namespace: str, application: Application, *, wanted: bool) -> dict[str, Any]:
        def patch(version: str) -> dict[str, Any]:
            change = {"metadata": {"uid": application.uid, "resourceVersion": version}, "spec": {"suspend": wanted}}
            return self._cluster.applications.patch(self.api_version, self._plural, namespace, application.name, change)

        return self._write(namespace, application, patch)

    def delete(self, namespace: str, application: Application) -> None:
        """See `ApplicationAdapter.delete`."""

        def delete(version: str) -> None:
            conditions = {"uid": application.uid, "resourceVersion": version}
            self._cluster.applications.delete(self.api_version, self._plural, namespace, application.name, conditions)

        self._write(namespace, application, delete)

    def _write(self, namespace: str, application: Application, write: Callable[[str], _T]) -> _T:
        """Write under the version that was observed, or a later one of the same spec: its operator may change the status all the time."""
        version = application.version
        for _ in range(_ATTEMPTS - 1):
            try:
                return write(version)
            except ApiError as error:
                if error.status != 409:
                    raise
                body = self._cluster.applications.get(self.api_version, self._plural, namespace, application.name, is_stale=always)
                seen = (body["metadata"]["uid"], body["metadata"]["generation"]) if body is not None else None
                if body is None or seen != (application.uid, application.generation):
                    raise
                version = body["metadata"]["resourceVersion"]
        return write(version)

    def left_over(self, namespace: str, name: str, uid: str, *, pending: bool) -> tuple[PodName, ...]:
        """See `ApplicationAdapter.left_over`.

        A driver that is deleted by force leaves its pending executors behind for as long as the application exists.
        """
        pods = self._cluster.pods.names(namespace, self._selector(name), PodPhases.ALIVE if pending else PodPhases.STARTED)
        others = {pod.uid for pod in pods if any(kind == self.kind and owner != uid for kind, owner in pod.owners)}
        # The application owns its driver, and the driver its executors.
        return tuple(pod for pod in pods if pod.uid not in others and not any(owner in others for _, owner in pod.owners))
