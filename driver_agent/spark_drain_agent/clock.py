"""The machine's clocks, also where the application has replaced `time.time` and `time.monotonic`, as freezegun and its like do."""

from __future__ import annotations

import time
from datetime import UTC, datetime

__all__ = ["monotonic", "utc_now", "wall"]

_get = time.clock_gettime


def monotonic() -> float:
    """Return seconds that only grow."""
    return _get(time.CLOCK_MONOTONIC)


def wall() -> float:
    """Return seconds since 1970."""
    return _get(time.CLOCK_REALTIME)


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.fromtimestamp(wall(), UTC)
