"""Digests that cannot be had."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

from spark_drain_agent.spark_internals.errors import interrupted

__all__ = ["or_unknown", "unlike_any_other"]

_LOG = logging.getLogger("spark_drain")


def or_unknown(what: str, digest: Callable[[], str]) -> str:
    """Return a digest, or where it cannot be made, which must keep no query from starting, a text that equals no other one.

    Parameters
    ----------
    what
        For the log: of what.
    digest
        Makes it.
    """
    try:
        return digest()
    except Exception as error:  # whatever Spark, or an object of the application, has in store
        if interrupted(error):
            raise
        _LOG.warning("%s cannot be looked at: no other start counts as the same version", what, exc_info=True)
        return unlike_any_other()


def unlike_any_other() -> str:
    """Return a text that equals no other one, in the place of a digest."""
    return f"unknown {uuid.uuid4()}"
