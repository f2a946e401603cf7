"""The executors of an application on Kubernetes: how many are wanted, which pods there are, what the next pods look like.

Spark builds each executor pod anew from the live SparkConf and the pod template that it names, so a template that is named for a while
decides where the next pod may run, without a webhook. Checked on Spark 3.5 to 4.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types

from spark_drain_agent.spark_internals.dynamic_allocation import DynamicAllocation
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.reflection import private_field
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["PLACEMENT_ANNOTATION", "ExecutorPod", "ExecutorPods"]

PLACEMENT_ANNOTATION: Final = "sparkdrain.io/placement"
"""On the pod that is asked for by a placement: its id."""

_BACKEND = "KubernetesClusterSchedulerBackend"
_ALLOCATOR = "org.apache.spark.scheduler.cluster.k8s.ExecutorPodsAllocator"
_TEMPLATE_CONF = "spark.kubernetes.executor.podTemplateFile"
_CONTAINER_CONF = "spark.kubernetes.executor.podTemplateContainerName"
_CONFS = ("spark.kubernetes.", "spark.decommission.", "spark.storage.decommission.")
_SELECTOR_CONFS = ("spark.kubernetes.node.selector.", "spark.kubernetes.executor.node.selector.")

_REFUSED = (400, 403, 422)
_NO_DRY_RUN = "does not support dry run"
"""Says the API server of a webhook."""


@dataclass(frozen=True, kw_only=True)
class ExecutorPod:
    """One executor's pod as the API server has it.

    Parameters
    ----------
    executor_id, name
        Spark's id of the executor, and the pod's name.
    node
        Where it was bound to; "" as long as it waits for a node.
    phase
        ``Pending``, ``Running``, ``Succeeded``, ``Failed``.
    placement_id
        The placement that has asked for it, or "".
    unscheduled
        Why the scheduler finds no node for it, or "".
    """

    executor_id: str
    name: str
    node: str = ""
    phase: str = "Running"
    placement_id: str = ""
    unscheduled: str = ""

    @property
    def started(self) -> bool:
        """Whether its process has been started."""
        return self.phase != "Pending"

    @property
    def over(self) -> bool:
        """Whether its process has ended."""
        return self.phase in ("Succeeded", "Failed")


class ExecutorPods:
    """Access to Spark's Kubernetes backend.

    Parameters
    ----------
    internals
        Access to Spark.
    """

    def __init__(self, internals: SparkInternals) -> None:
        self._internals = internals
        self._jvm = internals.jvm
        self.dynamic_allocation = DynamicAllocation(internals)

    @property
    def _backend(self) -> Any:
        return self._internals.scala_context.schedulerBackend()

    @property
    def _client(self) -> Any:
        return private_field(self._backend, "kubernetesClient")

    @property
    def _conf(self) -> Any:
        """The live SparkConf, not a copy."""
        return self._internals.scala_context.conf()

    @property
    def _allocator(self) -> Any:
        return private_field(self._backend, "podAllocator")

    def unsupported(self) -> str:
        """Return why single executors of this application cannot be replaced, or ""."""
        if str(self._backend.getClass().getSimpleName()) != _BACKEND:
            return f"its executors are not pods that Spark makes (spark.master is {self._internals.conf('spark.master')!r})"
        if str(self._allocator.getClass().getName()) != _ALLOCATOR:
            return "its executors are not made one by one: set spark.kubernetes.allocation.pods.allocator to direct"
        profiles = self._allocator.totalExpectedExecutorsPerResourceProfileId().size()
        if profiles != 1:
            return f"its executors have {profiles} resource profiles, and one is supported"
        return ""

    def pods(self) -> dict[str, ExecutorPod]:
        """Return the pods of the application's executors by executor id."""
        run_id, pods = self._internals.application_id, self._client.pods().inNamespace(self._namespace)
        listed = pods.withLabel("spark-app-selector", run_id).withLabel("spark-role", "executor").list()
        found = (_pod(json.loads(str(self._json(item)))) for item in listed.getItems())
        return {pod.executor_id: pod for pod in found}

    def unusable(self, node: str) -> str:
        """Return why no pod can be bound to a node, or "": also where the driver may not read nodes, as is usual."""
        try:
            found = self._client.nodes().withName(node).get()
        except JavaError:
            return ""
        if found is None:
            return f"there is no node {node}"
        return f"node {node} is cordoned" if found.getSpec().getUnschedulable() else ""

    def like(self, pod: ExecutorPod) -> dict[str, Any] | None:
        """Return a new pod like one that is there; None where it is gone."""
        there = self._client.pods().inNamespace(self._namespace).withName(pod.name).get()
        if there is None:
            return None
        found = json.loads(str(self._json(there)))
        metadata = {key: found["metadata"].get(key) or {} for key in ("labels", "annotations")}
        owners = found["metadata"].get("ownerReferences") or []
        spec = {key: value for key, value in found["spec"].items() if key not in ("nodeName", "ephemeralContainers")}
        new = {"name": f"{pod.name}-placement", "ownerReferences": owners, **metadata}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": new, "spec": spec}

    def refused(self, pod: Mapping[str, Any]) -> str:
        """Return why the API server takes no such pod, or "": also where that cannot be known.

        It is asked by a dry run, in which a ResourceQuota and webhooks have their say, but for those that answer to none. Since Spark 4.2
        a pod that is refused counts as a failed executor (``ExecutorPodsAllocator``), and some of them end the application.
        """
        try:
            made = self._serialization.unmarshal(json.dumps(pod))
            self._client.pods().inNamespace(self._namespace).resource(made).dryRun(True).create()
        except Py4JJavaError as error:
            return _refusal(error.java_exception)
        except JavaError:
            return ""
        return ""

    @property
    def _namespace(self) -> str:
        return self._internals.conf("spark.kubernetes.namespace", "default")

    @property
    def _serialization(self) -> Any:
        return self._jvm.io.fabric8.kubernetes.client.utils.Serialization

    def _json(self, resource: Any) -> Any:
        return self._serialization.asJson(resource)

    def registered(self) -> set[str]:
        """Return the ids of the executors that have registered with the driver and not gone."""
        return {executor_id for executor_id, _ in self._internals.executors()}

    def active(self) -> set[str]:
        """Return the ids of the executors that get tasks: those that have registered, and are neither being ended nor decommissioned."""
        return {executor_id for executor_id in self.registered() if self._backend.isExecutorActive(executor_id)}

    @property
    def target(self) -> int:
        """How many executors the pod allocator keeps up."""
        return sum(int(count) for count in self._allocator.totalExpectedExecutorsPerResourceProfileId().values())

    @target.setter
    def target(self, count: int) -> None:
        nowhere = self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
        self._internals.scala_context.requestTotalExecutors(count, 0, nowhere)

    def template(self) -> dict[str, Any]:
        """Return the pod that Spark begins a new executor pod with: the application's pod template, or an empty pod."""
        path = self.template_path
        if path is None:
            return {"apiVersion": "v1", "kind": "Pod"}
        named = self._jvm.scala.Option.apply(self._internals.conf(_CONTAINER_CONF) or None)
        loaded = self._jvm.org.apache.spark.deploy.k8s.KubernetesUtils.loadPodFromTemplate(self._client, path, named, self._conf)
        pod: dict[str, Any] = json.loads(str(self._json(loaded.pod())))
        container = json.loads(str(self._json(loaded.container())))
        others = (pod.get("spec") or {}).get("containers") or []
        if container.get("name"):
            pod.setdefault("spec", {})["containers"] = [container, *others]
        return pod

    @property
    def template_path(self) -> str | None:
        """The pod template that the live SparkConf names, or None."""
        found = self._conf.getOption(_TEMPLATE_CONF)
        return str(found.get()) if found.isDefined() else None

    def use_template(self, path: Path | str | None) -> None:
        """Have the next executor pods begin with a template; None: without one."""
        if path is None:
            self._conf.remove(_TEMPLATE_CONF)
        else:
            self._conf.set(_TEMPLATE_CONF, str(path))

    def confs(self) -> Mapping[str, str]:
        """Return what the live SparkConf has of Kubernetes and of decommissioning."""
        entries = ((str(entry._1()), str(entry._2())) for entry in self._conf.getAll())
        return {name: value for name, value in entries if name.startswith(_CONFS)}

    def node_selector(self) -> Mapping[str, str]:
        """Return the labels that the application's own conf wants of the nodes of executors."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.confs().items()
            for prefix in _SELECTOR_CONFS
            if name.startswith(prefix)
        }

    @property
    def most_with_claims(self) -> int:
        """Up to how many executors Spark makes claims where it waits for those that there are."""
        return int(private_field(self._allocator, "maxPVCs"))

    @property
    def decommissions(self) -> bool:
        """Whether executors end by themselves when they are decommissioned, after their blocks have moved (spark.decommission.enabled)."""
        return self._internals.conf("spark.decommission.enabled", "false").lower() == "true"

    def decommission(self, executor_id: str) -> bool:
        """Give an executor no more tasks, and have it end; False where it is not there any more."""
        info = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("placement", self._jvm.scala.Option.empty())
        return bool(self._backend.decommissionExecutor(executor_id, info, False, False))

    def busy(self, executor_id: str) -> bool:
        """Return whether an executor runs a task."""
        return bool(self._internals.scala_context.taskScheduler().isExecutorBusy(executor_id))

    def kill(self, executor_id: str) -> None:
        """End an executor at once; Spark makes another one where there are too few."""
        self._backend.killExecutors(self._internals.scala_seq([executor_id]), False, False, True)

    def delete(self, pod: ExecutorPod) -> None:
        """Delete a pod."""
        try:
            self._client.pods().inNamespace(self._namespace).withName(pod.name).delete()
        except JavaError as error:
            raise OSError(f"pod {pod.name} cannot be deleted: {error}") from error


def _refusal(exception: Any) -> str:
    """Return what the API server has answered to a pod that it does not take; "" where it has given another answer, or none."""
    if str(exception.getClass().getSimpleName()) != "KubernetesClientException" or int(exception.getCode()) not in _REFUSED:
        return ""
    status = exception.getStatus()
    answered = str((status.getMessage() if status is not None else None) or exception.getMessage())
    return "" if _NO_DRY_RUN in answered else answered


def _pod(body: Mapping[str, Any]) -> ExecutorPod:
    metadata, status = body["metadata"], body.get("status") or {}
    scheduled = [item for item in status.get("conditions") or [] if item.get("type") == "PodScheduled" and item.get("status") == "False"]
    return ExecutorPod(
        executor_id=str(metadata["labels"].get("spark-exec-id", "")),
        name=str(metadata["name"]),
        node=str((body.get("spec") or {}).get("nodeName") or ""),
        phase=str(status.get("phase") or "Pending"),
        placement_id=str((metadata.get("annotations") or {}).get(PLACEMENT_ANNOTATION, "")),
        unscheduled=str(scheduled[0].get("message") or scheduled[0].get("reason") or "") if scheduled else "",
    )
