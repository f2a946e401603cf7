"""The placements and drains that clear a node."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from spark_drain_operator.applications.kubeflow import KubeflowAdapter
from spark_drain_operator.clock import format_time, read_time
from spark_drain_operator.engine.conditions import FINISHED, SUCCEEDED
from spark_drain_operator.kinds.drain.reasons import Phase as DrainPhase
from spark_drain_operator.kinds.placement.reasons import Reason as PlacementReason
from spark_drain_operator.maintenance.decide import Attempt
from spark_drain_operator.storage.nodes import PodOnNode, Role
from spark_drain_operator.storage.own_objects import GROUP, VERSION, Resource

__all__ = ["NODE_LABEL", "OPT_IN", "POD_LABEL", "SINCE", "attempt_of", "in_the_way", "object_for", "reference_to"]

NODE_LABEL = f"{GROUP}/evacuated-node-uid"
POD_LABEL = f"{GROUP}/evacuated-pod-uid"
OPT_IN = f"{GROUP}/evacuate"
"""Annotation of a SparkApplication: with "true" its driver and executors may be moved off a node that is cleared."""
SINCE = f"{GROUP}/evacuated-since"
"""Annotation: since when the node was to be cleared, for an operator that is started again."""
_SHORT, _KEPT_SECONDS, _LONGEST = 10, 86_400, 86_400
_EXPIRATION_SECONDS = 300
_NUMBER = re.compile(r"[0-9]{1,4}")
_MARGIN_SECONDS = 60
"""What the pods of a driver that is stopped in mid-batch, or an executor that is decommissioned, may take to end."""
_ANSWER_SECONDS, _LONGEST_ANSWER_SECONDS, _SHARE_OF_THE_ANSWER = 60, 180, 10
"""What the agent may take to answer: a driver may have come from another node just now, and start there beside all others that came."""


def object_for(pod: PodOnNode, number: int, seconds_left: int, since: datetime | None = None) -> dict[str, Any]:
    """Return the PipelineDrain of a driver, or the ExecutorPlacement of an executor, under a name that the same attempt has again.

    Parameters
    ----------
    pod
        What is to be moved.
    number
        Of the attempt, from 1.
    seconds_left
        Until the node must be clear; shortly before, a driver that has not come to a batch boundary is stopped in mid-batch, and an
        executor that has not been replaced is decommissioned.
    since
        Since when the node is to be cleared, where that is to be found again.
    """
    digest = hashlib.sha256(f"{pod.node_uid}/{pod.uid}".encode()).hexdigest()[:_SHORT]
    left = min(max(1, seconds_left), _LONGEST)
    margin = min(_MARGIN_SECONDS, left // 5)
    spec: dict[str, Any] = {"applicationRef": reference_to(pod.application), "ttlSecondsAfterFinished": _KEPT_SECONDS}
    if pod.role is Role.DRIVER:
        answer = min(max(_ANSWER_SECONDS, left // _SHARE_OF_THE_ANSWER), _LONGEST_ANSWER_SECONDS)
        spec |= {
            "mode": "Stop",
            "afterDrain": "Restart",
            "acknowledgeTimeoutSeconds": answer,
            "timeoutSeconds": left - margin - (answer - _ANSWER_SECONDS),  # counted from the answer
            "onTimeout": "ForceStop",
            "ifNotRunning": "Succeed",
            "expirationSeconds": left,
        }
        if pod.run_id:  # the next run, of a driver that is lost, is elsewhere
            spec["runId"] = pod.run_id
    else:
        spec |= {
            "podName": pod.name,
            "destination": {"type": "AnyOther"},
            "expirationSeconds": min(left, _EXPIRATION_SECONDS),
            "decommissionAfterSeconds": left - margin,
        }
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "PipelineDrain" if pod.role is Role.DRIVER else "ExecutorPlacement",
        "metadata": {
            "namespace": pod.namespace,
            "name": f"{pod.application}-off-{digest}-{number}",
            "labels": {NODE_LABEL: pod.node_uid, POD_LABEL: pod.uid},
            **({"annotations": {SINCE: format_time(since)}} if since is not None else {}),
        },
        "spec": spec,
    }


def reference_to(application: str) -> dict[str, str]:
    """Return how a SparkApplication of that name is referred to."""
    return {"apiVersion": KubeflowAdapter.api_version, "kind": KubeflowAdapter.kind, "name": application}


def in_the_way(drain: Mapping[str, Any], role: Role) -> bool:
    """Return whether a pod is not moved as long as somebody's PipelineDrain of its application has not ended.

    A plan is in nobody's way, and one that waits for approval in that of a driver alone, whose application has one drain at a time.
    """
    spec = drain["spec"]
    execution = spec.get("execution", "Immediate")
    if execution == "PlanOnly" or (execution == "AfterApproval" and not spec.get("approved") and role is Role.EXECUTOR):
        return False
    return not _is_true(drain, FINISHED)


def attempt_of(resource: Resource, body: Mapping[str, Any]) -> Attempt:
    """Return what an object says of its attempt."""
    metadata, status = body["metadata"], body.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return Attempt(
        namespace=metadata["namespace"],
        name=metadata["name"],
        kind=resource.kind,
        application=body["spec"]["applicationRef"]["name"],
        pod_uid=labels.get(POD_LABEL, ""),
        finished=_is_true(body, FINISHED),
        succeeded=_is_true(body, SUCCEEDED),
        message=status.get("message", ""),
        completion_time=read_time(status.get("completionTime")),
        node_uid=labels.get(NODE_LABEL, ""),
        since=read_time(annotations.get(SINCE)),
        number=int(number) if _NUMBER.fullmatch(number := metadata["name"].rpartition("-")[2]) else 0,
        by_force=status.get("phase") == DrainPhase.FORCE_STOPPED
        or _condition(body, SUCCEEDED).get("reason") == PlacementReason.DECOMMISSIONED,
    )


def _is_true(body: Mapping[str, Any], condition: str) -> bool:
    return _condition(body, condition).get("status") == "True"


def _condition(body: Mapping[str, Any], condition: str) -> Mapping[str, Any]:
    conditions = (body.get("status") or {}).get("conditions") or []
    return next((item for item in conditions if item["type"] == condition), {})
