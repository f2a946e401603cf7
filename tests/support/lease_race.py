"""Runs that look for a lease at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from spark_drain_agent.checkpoint.files import CheckpointFiles, CheckpointLeasedError
from spark_drain_agent.checkpoint.lease import Lease, acquire_lease
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["Run", "race"]

_TRIALS = 5


class Run:
    """What a lease asks of a driver; it is void after so many seconds."""

    jvm_ended = stop_returned = False

    def __init__(self, run_id: str, seconds: float = 1) -> None:
        self.application_id, self._seconds = run_id, seconds

    def session_conf(self, name: str, default: str) -> str:
        return str(self._seconds)


def race(files_in: Callable[[str], CheckpointFiles], left: str | None = None) -> list[int]:
    """Let three runs look for a lease together, several times; return how many of them had it, each time.

    Parameters
    ----------
    files_in
        Returns the files of one run in a folder.
    left
        What a run that is gone has left as its lease, or None.
    """
    return [_once(files_in, str(trial), left) for trial in range(_TRIALS)]


def _once(files_in: Callable[[str], CheckpointFiles], folder: str, left: str | None) -> int:
    together = threading.Barrier(3)
    if left is not None:
        files_in(folder).write("_drain/lease", left)

    def acquire(run_id: str) -> Lease | None:
        files = files_in(folder)
        together.wait()
        try:
            return acquire_lease(files, cast(SparkInternals, Run(run_id)))
        except CheckpointLeasedError:
            return None

    with ThreadPoolExecutor(3) as pool:
        found = [lease for lease in pool.map(acquire, ["one", "two", "three"]) if lease is not None]
    for lease in found:
        lease.release()
    return len(found)
