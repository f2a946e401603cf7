"""Requests whose PipelineDrain has gone while no operator ran: somebody has removed its finalizer, or only the ConfigMaps were restored."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from spark_drain_store import ConflictError, DrainNotification
from spark_drain_store.drains import read_notifications

from spark_drain_operator.kinds.drain.resource import RESOURCE
from spark_drain_operator.storage import Cluster

__all__ = ["is_orphan", "remove_orphans"]

_log = logging.getLogger(__name__)


def is_orphan(cluster: Cluster, namespace: str, notification: DrainNotification) -> bool:
    """Return whether a request was written for a PipelineDrain that is gone; one that says nothing of it is somebody else's.

    It was there when the request was written, so one that is not there now, which is asked for anew, will not come.
    """
    if not notification.pipeline_drain:
        return False
    found = cluster.objects(RESOURCE).get(namespace, notification.pipeline_drain, fresh=True)
    orphan = found is None or found["metadata"]["uid"] != notification.drain_id
    if orphan:
        name = f"{namespace}/{notification.pipeline_drain}"
        _log.warning("%s: it is gone before its end; its request %s is removed", name, notification.drain_id)
    return orphan


def remove_orphans(cluster: Cluster, namespaces: Iterable[str]) -> None:
    """Remove such requests from all ConfigMaps of the namespaces; "" means everywhere."""
    for watched in namespaces:
        for namespace, requests, content in cluster.channels.all_requests(watched):
            notifications, _ = read_notifications(content)
            gone = [drain_id for drain_id, notification in notifications.items() if is_orphan(cluster, namespace, notification)]
            if gone:
                try:
                    requests.write(dict.fromkeys(gone), if_version=content.version)
                except ConflictError:
                    _log.info("%s: its requests have been changed meanwhile; what is left of them is removed later", namespace)
