"""When a node counts as Ready."""

from datetime import datetime
from typing import Any


def is_ready(node: dict[str, Any], since: datetime) -> bool:
    """Say whether a node has been Ready at a moment or later.

    Parameters
    ----------
    node : dict
        As the API server has it.
    since : datetime
        When the nodes were started: an older heartbeat says what was, not what is.
    """
    return any(
        c["type"] == "Ready" and c["status"] == "True" and datetime.fromisoformat(c["lastHeartbeatTime"]) >= since
        for c in node["status"].get("conditions", [])
    )
