"""Whether Spark's JVM is gone."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from spark_drain_agent.clock import monotonic

__all__ = ["jvm_ended"]

_CONNECT_SECONDS = 1.0
_ASK_AGAIN_SECONDS = 1.0
_answers: dict[int, tuple[float, bool]] = {}
"""By port, when it was tried to connect last, and whether something listened."""


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


def _has_a_jvm(processes: tuple[int, ...]) -> bool:
    """Return whether one of the processes is a JVM, or may be where the system does not say."""
    try:
        return any(Path(f"/proc/{each}/comm").read_text(errors="replace") == "java\n" for each in processes if each > 0)
    except OSError:
        return True


_FIRST_ANCESTORS = _ancestors()
_BELOW_A_JVM = _has_a_jvm(_FIRST_ANCESTORS)


def jvm_ended(gateway: Any) -> bool:
    """Return whether the JVM is gone: the one that this process has started, or the one that has started it (spark-submit).

    A script may stand between the two, and outlive the JVM; or another program has started both.

    Parameters
    ----------
    gateway
        Py4J's, of the SparkContext.
    """
    process = getattr(gateway, "proc", None)
    if process is not None:
        return process.poll() is not None
    if _BELOW_A_JVM and _ancestors() == _FIRST_ANCESTORS:
        return False
    return not _listens(gateway.gateway_parameters.address, gateway.gateway_parameters.port)


def _listens(address: str, port: int) -> bool:
    asked_at, answer = _answers.get(port, (0.0, True))
    if monotonic() - asked_at >= _ASK_AGAIN_SECONDS:
        try:
            socket.create_connection((address, port), _CONNECT_SECONDS).close()
            answer = True
        except OSError as error:  # any other one says nothing of the JVM: this process may have no file descriptor left
            answer = not isinstance(error, ConnectionRefusedError)
        _answers[port] = (monotonic(), answer)
    return answer
