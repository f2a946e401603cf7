"""PipelineDrains in the API."""

from __future__ import annotations

from spark_drain_operator.kinds.drain.reasons import Phase
from spark_drain_operator.storage.own_objects import GROUP, Resource

__all__ = ["RESOURCE"]

RESOURCE = Resource("PipelineDrain", "pipelinedrains", f"{GROUP}/drain", tuple(phase for phase in Phase if phase.terminal))
