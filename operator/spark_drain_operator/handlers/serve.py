"""Puts the parts together and runs them."""

from __future__ import annotations

import logging

import kopf
from spark_drain_store.kube_client import KubeClient

from spark_drain_operator.engine.queue import DelayedQueue
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.engine.workers import ObjectKey, Workers
from spark_drain_operator.handlers.login import register_login
from spark_drain_operator.handlers.register import register
from spark_drain_operator.kinds import kinds
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster

__all__ = ["run_operator"]

_log = logging.getLogger(__name__)


async def run_operator(settings: Settings, liveness: str | None) -> None:
    """Watch and reconcile until the process is told to end.

    Raises
    ------
    ApiUnavailableError
        There are no credentials.
    """
    cluster = Cluster.over(KubeClient.from_environment())
    queue: DelayedQueue[ObjectKey] = DelayedQueue()
    served = kinds(cluster, settings)
    reconcilers = {kind.resource.kind: Reconciler(kind, cluster) for kind in served}
    workers = Workers(queue, lambda key: reconcilers[key.kind].reconcile(key.namespace, key.name), settings.workers)
    registry = kopf.OperatorRegistry()
    register_login(registry)
    register(registry, [kind.resource for kind in served], queue, workers)
    _log.info("watching %s", ", ".join(settings.namespaces) or "the whole cluster")
    await kopf.operator(
        registry=registry,
        standalone=True,
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
        liveness_endpoint=liveness,
    )
