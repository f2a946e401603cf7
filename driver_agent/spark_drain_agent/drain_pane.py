"""Tell user code that what it sees was emitted early, by a drain (Beam's PaneInfo.isDrain)."""

from __future__ import annotations

from pyspark import TaskContext

from spark_drain_agent.spark_internals import active_context

__all__ = ["DRAIN_PANE_PROPERTY", "is_drain_pane"]

DRAIN_PANE_PROPERTY = "spark.sparkdrain.pane"


def is_drain_pane() -> bool:
    """Return whether the calling code runs for a flush batch, in an executor's Python worker or in foreachBatch on the driver."""
    task = TaskContext.get()
    if task is not None:
        return task.getLocalProperty(DRAIN_PANE_PROPERTY) == "true"
    context = active_context()
    return context is not None and context.getLocalProperty(DRAIN_PANE_PROPERTY) == "true"
