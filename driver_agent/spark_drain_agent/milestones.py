"""Named points that a drain passes: logged, timed, and where crash tests kill the process."""

from __future__ import annotations

import logging
from collections.abc import Callable

from spark_drain_store.one_line import one_line

__all__ = ["LOG", "observe", "reached"]


def _as_one_line(record: logging.LogRecord) -> bool:
    """Escape the control characters of a message: whoever requests a drain chooses words of it."""
    text = record.getMessage()
    if (escaped := one_line(text)) != text:
        record.msg, record.args = escaped, ()
    return True


LOG = logging.getLogger("spark_drain")
LOG.addFilter(_as_one_line)
_observers: list[Callable[[str], None]] = []


def observe(observer: Callable[[str], None]) -> None:
    """Call ``observer`` with the name of each point when it is passed, in the thread that passes it."""
    _observers.append(observer)


def reached(point: str) -> None:
    """Say that a point was passed."""
    LOG.debug("reached %s", point)
    for observer in _observers:
        observer(point)
