"""What the installation decides, not a single drain."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Settings"]


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
    """

    namespaces: tuple[str, ...] = ()
    allow_delete: bool = False
    workers: int = 4
    resync_seconds: float = 30.0
