"""Drains that have ended, without anybody having drained anything."""

from typing import Any

from tests.support.apiserver import DRAINS, ApiServer, drain_body

_ENDED = "2026-01-01T00:00:00Z"


def finished(server: ApiServer, namespace: str, name: str, *, finalizers: tuple[str, ...] = (), **spec: Any) -> dict[str, Any]:
    """Make a drain that has ended; returns it as it was created."""
    path = DRAINS.format(namespace)
    body = drain_body(name, **spec)
    body["metadata"]["finalizers"] = [*finalizers]
    body = server.client.request("POST", path, body=body)
    condition = {"type": "Finished", "reason": "Drained", "message": "", "status": "True", "lastTransitionTime": _ENDED}
    status = {"observedGeneration": 1, "phase": "Drained", "conditions": [condition], "completionTime": _ENDED}
    server.client.request("PUT", f"{path}/{name}/status", body={**body, "status": status})
    return body
