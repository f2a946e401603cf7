"""Requests whose PipelineDrain has gone while no operator ran: somebody has removed its finalizer, or only the ConfigMaps were restored."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from spark_drain_store import ConflictError, DrainNotification, Snapshot, StoreError
from spark_drain_store.drains import read_notifications
from spark_drain_store.kube_client import ApiError, ApiUnavailableError
from spark_drain_store.topics import TopicStore

from spark_drain_operator.kinds.drain.resource import RESOURCE
from spark_drain_operator.kinds.references import is_name
from spark_drain_operator.storage import Cluster

__all__ = ["is_orphan", "remove_orphans"]

_log = logging.getLogger(__name__)


def is_orphan(cluster: Cluster, namespace: str, notification: DrainNotification) -> bool:
    """Return whether a request was written for a PipelineDrain that is gone; one that says nothing of it is somebody else's.

    It was there when the request was written, so one that is not there now, which is asked for anew, will not come.
    """
    if not is_name(notification.pipeline_drain):
        return False
    found = cluster.objects(RESOURCE).get(namespace, notification.pipeline_drain, fresh=True)
    orphan = found is None or found["metadata"]["uid"] != notification.drain_id
    if orphan:
        name = f"{namespace}/{notification.pipeline_drain}"
        _log.warning("%s: it is gone before its end, and its request %s is still there", name, notification.drain_id)
    return orphan


def remove_orphans(cluster: Cluster, namespaces: Iterable[str]) -> bool:
    """Remove such requests from all ConfigMaps of the namespaces; "" means everywhere.

    What the API server refuses is told, and left alone: who may write ConfigMaps in one namespace decides nothing for the others.

    Returns
    -------
    bool
        Whether nothing was refused.

    Raises
    ------
    ApiUnavailableError
        The API server is away.
    """
    done = True
    for watched in namespaces:
        try:
            for namespace, requests, content in cluster.channels.all_requests(watched):
                done = _remove_from(cluster, namespace, requests, content) and done
        except (ApiError, ApiUnavailableError) as error:
            if isinstance(error, ApiUnavailableError) and not error.answered:
                raise
            _log.warning("requests in %s could not be looked through: %s", watched or "the cluster", error)
            done = False
    return done


def _remove_from(cluster: Cluster, namespace: str, requests: TopicStore, content: Snapshot) -> bool:
    notifications, _ = read_notifications(content)
    try:
        gone = [drain_id for drain_id, notification in notifications.items() if is_orphan(cluster, namespace, notification)]
        if gone:
            requests.write(dict.fromkeys(gone), if_version=content.version)
    except ConflictError:
        _log.info("%s: its requests have been changed meanwhile; what is left of them is removed later", namespace)
    except (ApiError, StoreError) as error:
        _log.warning("%s: what is left of drains that are gone stays: %s", namespace, error)
        return False
    return True
