"""What wakes a drain: the watches of ConfigMaps, driver pods and applications, which its passes read as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spark_drain_operator.applications import adapters
from spark_drain_operator.engine.queue import DelayedQueue
from spark_drain_operator.engine.workers import ObjectKey
from spark_drain_operator.handlers.watched import Watched
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.channels import CONFIG_MAPS
from spark_drain_operator.storage.informer import Informer
from spark_drain_operator.storage.pods import APP_LABEL, DRIVERS

__all__ = ["informers"]

_TOGETHER_SECONDS = 0.1
"""An agent reports several steps in one moment, and pods end together: one pass for all of them."""


def informers(
    cluster: Cluster,
    namespaces: Iterable[str],
    watched: Watched,
    queue: DelayedQueue[ObjectKey],
    applications: Iterable[Callable[[Mapping[str, Any]], None]] = (),
) -> list[Informer]:
    """Return the watches, not started yet.

    Parameters
    ----------
    cluster
        Its cache is kept up to date.
    namespaces
        Where to watch; "" means everywhere.
    watched
        Which objects wait for what.
    queue
        Where keys go.
    applications
        Who else is told of each application.
    """
    others = tuple(applications)

    def report_seen(body: Mapping[str, Any]) -> None:
        metadata = body["metadata"]
        for key in watched.of_config_map(metadata["namespace"], metadata["name"]):
            watched.hasten(key)
            queue.add(key, _TOGETHER_SECONDS)

    def driver_seen(body: Mapping[str, Any]) -> None:
        metadata = body["metadata"]
        for key in watched.of_application(metadata["namespace"], (metadata.get("labels") or {}).get(APP_LABEL, "")):
            queue.add(key, _TOGETHER_SECONDS)

    def application_seen(body: Mapping[str, Any]) -> None:
        metadata = body["metadata"]
        for key in watched.of_application(metadata["namespace"], metadata["name"]):
            queue.add(key, _TOGETHER_SECONDS)
        for tell in others:
            tell(body)

    wanted = [(CONFIG_MAPS, report_seen), (DRIVERS, driver_seen)]
    wanted += [(adapter.watched, application_seen) for adapter in adapters(cluster)]
    client, cache = cluster.client, cluster.cache
    return [Informer(client, cache, collection, namespace, changed) for namespace in namespaces for collection, changed in wanted]
