"""Dynamic allocation: how many executors Spark wants at the moment, and which of them it counts on.

Spark's ExecutorAllocationManager looks every 100 ms. It ends executors that have been idle for long as long as enough others are there, and
tells the cluster manager how many are wanted only when that number changes, or after it has ended some. Checked on Spark 3.5 to 4.3.
"""

from __future__ import annotations

from typing import Any

from spark_drain_agent.spark_internals.reflection import private_field
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["DynamicAllocation"]

_DEFAULT_PROFILE = 0


class DynamicAllocation:
    """Access to the ExecutorAllocationManager.

    Parameters
    ----------
    internals
        Access to Spark.
    """

    def __init__(self, internals: SparkInternals) -> None:
        self._internals = internals

    @property
    def enabled(self) -> bool:
        """Whether the application has dynamic allocation."""
        return self._found is not None

    @property
    def _found(self) -> Any:
        found = self._internals.scala_context.executorAllocationManager()
        return found.get() if found.isDefined() else None

    @property
    def wanted(self) -> int:
        """How many executors it wants at the moment, of the default resource profile."""
        return int(self._found.numExecutorsTargetPerResourceProfileId().apply(_DEFAULT_PROFILE))

    def set_aside(self, executor_id: str) -> None:
        """Have it neither end an executor nor count on it, as with one that it decommissions itself."""
        self._decommissioned(executor_id)

    def take_back(self, executor_id: str) -> None:
        """Have it count on an executor again."""
        tracker = private_field(self._found.executorMonitor(), "executors").get(executor_id)
        if tracker is not None:
            getattr(tracker, "decommissioning_$eq")(False)
            self._decommissioned()  # no more of them, but it looks anew which ones have been idle for too long

    def _decommissioned(self, *executor_ids: str) -> None:
        self._found.executorMonitor().executorsDecommissioned(self._internals.scala_seq(executor_ids))
