"""What user code can ask about the batch that it runs in, told by local properties, which Spark carries to every task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkContext, TaskContext

from spark_drain_agent.spark_internals import active_context

__all__ = ["DRAIN_PANE_PROPERTY", "GENERATION_PROPERTY", "generation", "is_drain_pane", "marked"]

DRAIN_PANE_PROPERTY = "spark.sparkdrain.pane"
GENERATION_PROPERTY = "spark.sparkdrain.generation"


def is_drain_pane() -> bool:
    """Return whether the calling code runs for a flush batch (Beam's PaneInfo.isDrain).

    It works in an executor's Python worker and, on the driver, in foreachBatch.
    """
    return _property(DRAIN_PANE_PROPERTY) == "true"


def generation() -> int:
    """Return how often the query's checkpoint had been drained when the query was started: 0, then 1, ...

    Batch ids start at 0 again in each generation that a drain has reseeded, so a sink that remembers batch ids needs both as its key.
    It works where `is_drain_pane` does.
    """
    return int(_property(GENERATION_PROPERTY) or 0)


def _property(name: str) -> str | None:
    task = TaskContext.get()
    if task is not None:
        return task.getLocalProperty(name)
    context = active_context()
    return context.getLocalProperty(name) if context is not None else None


@contextmanager
def marked(context: SparkContext, marks: Mapping[str, str]) -> Iterator[None]:
    """Give the queries that are started in this block, by this thread, local properties."""
    for name, value in marks.items():
        context.setLocalProperty(name, value)
    try:
        yield
    finally:
        for name in marks:
            context.setLocalProperty(name, None)  # type: ignore[arg-type]  # PySpark removes a property by None
