"""Puts the parts together and runs them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Collection, Sequence
from typing import Any

import kopf
from kopf._cogs.structs.references import Insights
from spark_drain_store.kube_client import KubeClient

from spark_drain_operator.engine.queue import DelayedQueue
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.engine.workers import ObjectKey, Workers
from spark_drain_operator.handlers.ended import Ended
from spark_drain_operator.handlers.login import register_login
from spark_drain_operator.handlers.orphans import orphans
from spark_drain_operator.handlers.register import register
from spark_drain_operator.handlers.watched import Watched
from spark_drain_operator.handlers.watches import informers
from spark_drain_operator.kinds import kinds
from spark_drain_operator.maintenance.watch import NodeWatch
from spark_drain_operator.periodic import Periodic
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.access import Access
from spark_drain_operator.storage.informer import Informer
from spark_drain_operator.storage.own_objects import Resource
from spark_drain_operator.storage.watch_cache import WatchCache

__all__ = ["RestoredError", "run_operator"]

_STOP_SECONDS = 2.0
_FOLLOW_SECONDS = 1.0

_log = logging.getLogger(__name__)


class RestoredError(Exception):
    """The API server was restored from a backup: kopf's watches, and what is remembered, belong to a time that has not been."""


async def run_operator(settings: Settings, liveness: str | None) -> None:
    """Watch and reconcile until the process is told to end.

    Raises
    ------
    ApiUnavailableError
        There are no credentials.
    NotServedError
        The operator may not read what it has to watch, or its definitions are not installed.
    RestoredError
        A process that begins anew knows what holds now.
    """
    cluster = Cluster.over(KubeClient.from_environment())
    watched = Watched()
    queue: DelayedQueue[ObjectKey] = DelayedQueue(rank=watched.rank, owner=lambda key: key.namespace)
    served = kinds(cluster, settings)
    resources = [kind.resource for kind in served]
    reconcilers = {kind.resource.kind: Reconciler(kind, cluster) for kind in served}

    def reconcile(key: ObjectKey) -> float | None:
        return reconcilers[key.kind].reconcile(key.namespace, key.name)

    def tell(key: ObjectKey, problem: str) -> None:
        reconcilers[key.kind].tell_failure(key.namespace, key.name, problem)

    def may_have_left(key: ObjectKey) -> bool:
        return reconcilers[key.kind].may_have_left(key.namespace, key.name)

    workers = Workers(queue, reconcile, settings.workers, tell)
    access = Access(cluster.client, resources, settings.namespaces, cluster.cache.versions)
    await asyncio.to_thread(access.await_first)
    registry = kopf.OperatorRegistry()
    register_login(registry)
    register(
        registry, resources, watched, cluster.cache, queue, workers=workers, unserved=lambda: access.found, may_have_left=may_have_left
    )
    namespaces = settings.namespaces or ("",)
    for resource in resources:
        cluster.cache.watch(resource.collection)
    _believe(cluster.cache, resources, access.watchable)
    _log.info("watching %s", ", ".join(access.watchable) or "the whole cluster")
    ended = Ended(cluster, resources, lambda: access.watchable, queue)
    nodes = NodeWatch(cluster, settings.nodes, lambda: access.watchable) if settings.nodes is not None else None
    watches = informers(cluster, namespaces, watched, queue, [nodes.application_seen] if nodes is not None else ())
    threads: list[Periodic | Informer] = [ended.thread, orphans(cluster, lambda: access.watchable), access.thread, *watches]
    if nodes is not None:
        threads += [nodes.informer, nodes.thread]
    for thread in threads:
        thread.start()
    insights = Insights()
    restored, stop = cluster.cache.versions.restored, asyncio.Event()
    tasks = [asyncio.create_task(_stop_when(restored, stop))]
    if settings.namespaces:
        tasks.append(asyncio.create_task(_follow(access, insights, cluster.cache, resources)))
    try:
        await kopf.operator(
            registry=registry,
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=access.watchable if settings.namespaces else (),
            liveness_endpoint=liveness,
            insights=insights,
            stop_flag=stop,
        )
    finally:
        for task in tasks:
            task.cancel()
        for thread in threads:
            thread.stop()
        cluster.events.close(_STOP_SECONDS)
    if restored.is_set():
        raise RestoredError("the API server was restored from a backup: start the operator again, as Kubernetes does")


async def _stop_when(restored: threading.Event, stop: asyncio.Event) -> None:
    while not restored.is_set():
        await asyncio.sleep(_FOLLOW_SECONDS)
    stop.set()


def _believe(cache: WatchCache, resources: Sequence[Resource], watched: Collection[str], unwatched: Collection[str] = ()) -> None:
    """Have passes read what kopf watches, and ask for what it does not."""
    for resource in resources:
        for namespace in watched:
            cache.heard(resource.plural, namespace, always=True)
        for namespace in unwatched:
            cache.lost(resource.plural, namespace)


async def _follow(access: Access, insights: Insights, cache: WatchCache, resources: Sequence[Resource]) -> None:
    """Have kopf watch what can be watched: a stream that is refused for long would end all of them."""
    while True:
        await asyncio.sleep(_FOLLOW_SECONDS)
        watchable: set[Any] = set(access.watchable)
        if watchable and watchable != insights.namespaces:
            _believe(cache, resources, watchable, {str(namespace) for namespace in insights.namespaces} - watchable)
            async with insights.revised:
                insights.namespaces.clear()
                insights.namespaces.update(watchable)
                insights.revised.notify_all()
