"""What the installation decides, not a single drain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["NodeSettings", "Settings"]


@dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """How nodes are cleared by the operator itself.

    Parameters
    ----------
    taints
        Keys of the taints of nodes that are to be cleared, and how many seconds such a node has.
    cordon_seconds
        How long a cordoned node has.
    urgent_seconds
        With less time than this all applications are moved at once.
    at_once
        How many applications may be under way at the same time.
    budgets
        Whether evictions of pods that can be moved are refused until they are, by PodDisruptionBudgets.
    """

    taints: Mapping[str, int] = field(default_factory=dict)
    cordon_seconds: int = 1800
    urgent_seconds: int = 90
    at_once: int = 5
    budgets: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one operator process.

    Parameters
    ----------
    namespaces
        What to watch; empty means the whole cluster.
    allow_delete
        Whether spec.afterDrain Delete is allowed.
    workers
        Drains that are reconciled at the same time.
    resync_seconds
        A waiting drain is looked at again after this time even when no event says so.
    nodes
        How nodes are cleared; None where they are not watched.
    """

    namespaces: tuple[str, ...] = ()
    allow_delete: bool = False
    workers: int = 4
    resync_seconds: float = 30.0
    nodes: NodeSettings | None = None
