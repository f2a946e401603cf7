"""Kinds of objects that the operator brings forward, one folder each."""

from __future__ import annotations

from typing import Any

from spark_drain_operator.engine.kind import Kind
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.kinds.placement.kind import PlacementKind
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster

__all__ = ["kinds"]


def kinds(cluster: Cluster, settings: Settings) -> tuple[Kind[Any, Any, Any], ...]:
    """Return the kinds of this version."""
    return (DrainKind(cluster, settings), PlacementKind(cluster, settings))
