"""Whether Spark's JVM is gone."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

__all__ = ["jvm_ended"]

_CONNECT_SECONDS = 1.0


def _ancestors() -> tuple[int, ...]:
    """Return the ids of the processes above this one, the nearest first; only that one where the system has no ``/proc``."""
    found = [os.getppid()]
    while found[-1] > 1:
        try:
            after_name = Path(f"/proc/{found[-1]}/stat").read_text(errors="replace").rpartition(")")[2]
        except OSError:
            break
        found.append(int(after_name.split()[1]))
    return tuple(found)


_FIRST_ANCESTORS = _ancestors()


def jvm_ended(gateway: Any) -> bool:
    """Return whether the JVM is gone: the one that this process has started, or the one that has started it (spark-submit).

    A script may stand between the two, and outlive the JVM.

    Parameters
    ----------
    gateway
        Py4J's, of the SparkContext.
    """
    process = getattr(gateway, "proc", None)
    if process is not None:
        return process.poll() is not None
    return _ancestors() != _FIRST_ANCESTORS and not _listens(gateway.gateway_parameters.address, gateway.gateway_parameters.port)


def _listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
