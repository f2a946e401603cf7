"""Named points that a drain passes: logged, timed, and where crash tests kill the process."""

from __future__ import annotations

import logging
from collections.abc import Callable

__all__ = ["LOG", "observe", "reached"]

LOG = logging.getLogger("spark_drain")
_observers: list[Callable[[str], None]] = []


def observe(observer: Callable[[str], None]) -> None:
    """Call ``observer`` with the name of each point when it is passed, in the thread that passes it."""
    _observers.append(observer)


def reached(point: str) -> None:
    """Say that a point was passed."""
    LOG.debug("reached %s", point)
    for observer in _observers:
        observer(point)
