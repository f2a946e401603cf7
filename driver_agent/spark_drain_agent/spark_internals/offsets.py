"""Comparing source offsets, as Spark writes them."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["covers", "narrowed"]


def covers(read: str | None, latest: str | None) -> bool:
    """Return whether reading up to one offset has read all up to another; None is an offset before all data.

    A partition without data need not have been read: a source may not know of it yet.
    """
    return latest is None or _covers(None if read is None else json.loads(read), json.loads(latest))


def _covers(read: Any, latest: Any) -> bool:
    if isinstance(latest, dict):
        return all(_covers(read.get(key) if isinstance(read, dict) else None, part) for key, part in latest.items())
    return bool(latest <= 0 if read is None else read >= latest)


def narrowed(latest: str, now: str) -> str:
    """Return an end of data without what is gone: partitions that are no more there, and records of one that begins anew."""
    return json.dumps(_narrowed(json.loads(latest), json.loads(now)))


def _narrowed(latest: Any, now: Any) -> Any:
    if isinstance(latest, dict) and isinstance(now, dict):
        return {key: _narrowed(part, now[key]) for key, part in latest.items() if key in now}
    return min(latest, now)
