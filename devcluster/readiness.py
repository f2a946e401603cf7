"""What the API server says about nodes and pods, and whether it still holds."""

from datetime import datetime
from typing import Any


def is_ready(node: dict[str, Any], since: datetime) -> bool:
    """Say whether a node has been Ready at a moment or later.

    Parameters
    ----------
    node : dict
        As the API server has it.
    since : datetime
        When it was started: an older heartbeat says what was, not what is.
    """
    return any(datetime.fromisoformat(condition["lastHeartbeatTime"]) >= since for condition in _ready(node))


def is_outdated(pod: dict[str, Any], since: datetime) -> bool:
    """Say whether a pod is said to be Ready because of containers that ended when its node was stopped.

    Parameters
    ----------
    pod : dict
        As the API server has it.
    since : datetime
        When its node was started.
    """
    status = pod["status"]
    began = [state["running"]["startedAt"] for item in status.get("containerStatuses", []) if "running" in (state := item["state"])]
    return bool(_ready(pod)) and any(datetime.fromisoformat(moment) < since for moment in began)


def _ready(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in body["status"].get("conditions", []) if item["type"] == "Ready" and item["status"] == "True"]
