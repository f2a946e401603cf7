"""The placements and drains that clear a node."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from spark_drain_operator.clock import read_time
from spark_drain_operator.engine.conditions import FINISHED, SUCCEEDED
from spark_drain_operator.maintenance.decide import Attempt
from spark_drain_operator.storage.nodes import PodOnNode, Role
from spark_drain_operator.storage.own_objects import GROUP, VERSION, Resource

__all__ = ["NODE_LABEL", "POD_LABEL", "attempt_of", "object_for"]

NODE_LABEL = f"{GROUP}/evacuated-node-uid"
POD_LABEL = f"{GROUP}/evacuated-pod-uid"
_SHORT, _KEPT_SECONDS, _LONGEST = 10, 86_400, 86_400
_EXPIRATION_SECONDS = 300
_MARGIN_SECONDS = 60
"""What the pods of a driver that is stopped in mid-batch may take to end."""


def object_for(pod: PodOnNode, node_uid: str, number: int, seconds_left: int) -> dict[str, Any]:
    """Return the PipelineDrain of a driver, or the ExecutorPlacement of an executor, under a name that the same attempt has again.

    Parameters
    ----------
    pod
        What is to be moved.
    node_uid
        Of the node that is cleared.
    number
        Of the attempt, from 1.
    seconds_left
        Until the node must be clear; a driver that has not come to a batch boundary shortly before is stopped in mid-batch.
    """
    digest = hashlib.sha256(f"{node_uid}/{pod.uid}".encode()).hexdigest()[:_SHORT]
    left = min(max(1, seconds_left), _LONGEST)
    margin = min(_MARGIN_SECONDS, left // 5)
    application = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": pod.application}
    spec: dict[str, Any] = {"applicationRef": application, "ttlSecondsAfterFinished": _KEPT_SECONDS}
    if pod.role is Role.DRIVER:
        spec |= {
            "mode": "Stop",
            "afterDrain": "Restart",
            "timeoutSeconds": left - margin,
            "onTimeout": "ForceStop",
            "ifNotRunning": "Succeed",
            "expirationSeconds": left,
        }
        if pod.run_id:  # the next run, of a driver that is lost, is elsewhere
            spec["runId"] = pod.run_id
    else:
        spec |= {"podName": pod.name, "destination": {"type": "AnyOther"}, "expirationSeconds": min(left, _EXPIRATION_SECONDS)}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "PipelineDrain" if pod.role is Role.DRIVER else "ExecutorPlacement",
        "metadata": {
            "namespace": pod.namespace,
            "name": f"{pod.application}-off-{digest}-{number}",
            "labels": {NODE_LABEL: node_uid, POD_LABEL: pod.uid},
        },
        "spec": spec,
    }


def attempt_of(resource: Resource, body: Mapping[str, Any]) -> Attempt:
    """Return what an object says of its attempt."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or []}
    return Attempt(
        namespace=metadata["namespace"],
        name=metadata["name"],
        kind=resource.kind,
        application=body["spec"]["applicationRef"]["name"],
        pod_uid=(metadata.get("labels") or {}).get(POD_LABEL, ""),
        finished=conditions.get(FINISHED) == "True",
        succeeded=conditions.get(SUCCEEDED) == "True",
        message=status.get("message", ""),
        completion_time=read_time(status.get("completionTime")),
    )
