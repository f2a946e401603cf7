"""Marks the agent's own threads, whose calls into PySpark must not meet the agent's hooks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["as_agent", "is_agent"]

_thread = threading.local()


@contextmanager
def as_agent() -> Iterator[None]:
    """Call PySpark unhooked within this block."""
    before = is_agent()
    _thread.agent = True
    try:
        yield
    finally:
        _thread.agent = before


def is_agent() -> bool:
    """Return whether the calling thread is in an `as_agent` block."""
    return bool(getattr(_thread, "agent", False))
