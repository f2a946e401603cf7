"""Kinds of applications that can be drained, behind one Protocol."""

from __future__ import annotations

from collections.abc import Sequence

from spark_drain_operator.applications.kubeflow import KubeflowAdapter
from spark_drain_operator.applications.protocol import ApplicationAdapter, ApplicationRef
from spark_drain_operator.storage import Cluster

__all__ = ["adapters", "find_adapter"]


def adapters(cluster: Cluster) -> tuple[ApplicationAdapter, ...]:
    """Return the adapters of this version."""
    return (KubeflowAdapter(cluster),)


def find_adapter(known: Sequence[ApplicationAdapter], ref: ApplicationRef) -> ApplicationAdapter | None:
    """Return the adapter of a reference, or None where the kind is not supported."""
    return next((adapter for adapter in known if (adapter.api_version, adapter.kind) == (ref.api_version, ref.kind)), None)
