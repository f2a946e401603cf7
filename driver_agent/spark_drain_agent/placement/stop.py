"""The end of one executor."""

from __future__ import annotations

from spark_drain_agent.clock import monotonic
from spark_drain_agent.spark_internals.executor_pods import ExecutorPods

__all__ = ["Stop"]

_STOP_SECONDS = 120.0
"""How long an executor that is decommissioned may take to end by itself, before it is killed; and as long again after that."""


class Stop:
    """An executor that was decommissioned, and ends as soon as Spark lets it.

    Parameters
    ----------
    pods
        The application's executors.
    executor_id
        Which one.
    """

    def __init__(self, pods: ExecutorPods, executor_id: str) -> None:
        self._pods = pods
        self._executor_id = executor_id
        self._begun = monotonic()

    def over(self) -> bool | None:
        """Look after it; True when it is gone, False when it will not be waited for any more, None before that."""
        if self._executor_id not in self._pods.registered():
            return True
        waited = monotonic() - self._begun
        if waited > 2 * _STOP_SECONDS:
            return False
        if waited > _STOP_SECONDS or not (self._pods.decommissions or self._pods.busy(self._executor_id)):
            self._pods.kill(self._executor_id)
        return None
