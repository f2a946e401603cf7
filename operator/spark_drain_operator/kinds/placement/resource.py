"""ExecutorPlacements in the API."""

from __future__ import annotations

from spark_drain_operator.kinds.placement.reasons import Phase
from spark_drain_operator.storage.own_objects import GROUP, Resource

__all__ = ["RESOURCE"]

RESOURCE = Resource(
    "ExecutorPlacement", "executorplacements", f"{GROUP}/placement", tuple(phase for phase in Phase if phase.terminal), stops=False
)
