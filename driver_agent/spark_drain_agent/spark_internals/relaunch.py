"""The session in which the agent starts a query of the application once more, from a thread and on a folder of its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["relaunching"]

_DELTA = "spark.databricks.delta.streaming."
_LIFTED = {f"{_DELTA}allowSchemaLocationOutsideCheckpointLocation": "true", f"{_DELTA}schemaTracking.metadataPathCheck.enabled": "false"}
"""Delta wants a source's schema log below the checkpoint that it was made for; a work copy of that checkpoint is another folder."""

_lock = threading.Lock()
_under_way: Counter[str] = Counter()
_lifted: dict[str, list[str]] = {}


@contextmanager
def relaunching(sessions: Any, session: Any) -> Iterator[None]:
    """Let the block start a query as the application's own thread could, and wait for its sources.

    Parameters
    ----------
    sessions
        Companion of Spark's session class.
    session
        The JVM's session. Without an active one Delta's catalog does not find the table of ``toTable`` again.
    """
    sessions.setActiveSession(session)
    key, conf = str(session.sessionUUID()), session.sessionState().conf()
    with _lock:
        if not _under_way[key]:
            _lifted[key] = [name for name in _LIFTED if not conf.contains(name)]
            for name in _lifted[key]:
                conf.setConfString(name, _LIFTED[name])
        _under_way[key] += 1
    try:
        yield
    finally:
        with _lock:
            _under_way[key] -= 1
            if not _under_way[key]:
                for name in _lifted.pop(key):
                    conf.unsetConf(name)
