"""What user code can ask about the batch that it runs in, told by local properties, which Spark carries to every task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkContext, TaskContext

from spark_drain_agent.spark_internals.jvm_thread import in_one_jvm_thread, local_property, pins_threads, set_local_property
from spark_drain_agent.spark_internals.open_calls import afterwards
from spark_drain_agent.spark_internals.session import active_context

__all__ = ["DRAIN_PANE_PROPERTY", "UnknownBatchError", "generation", "is_drain_pane", "marked", "marks_of_start"]

DRAIN_PANE_PROPERTY = "spark.sparkdrain.pane"
_GENERATION_PROPERTY = "spark.sparkdrain.generation"
_QUERY_PROPERTY = "sql.streaming.queryId"  # Spark sets it in the thread that runs a query's batches


class UnknownBatchError(RuntimeError):
    """The calling thread runs no batch, or a batch of a query that the agent has not started; the message says what to do."""


def is_drain_pane() -> bool:
    """Return whether the calling code runs for a flush batch (Beam's PaneInfo.isDrain).

    It works in an executor's Python worker and, on the driver, in the foreachBatch function's own thread and in threads that inherit its
    local properties (`pyspark.InheritableThread`).

    Raises
    ------
    UnknownBatchError
        The calling thread runs no batch.
    """
    if _property(DRAIN_PANE_PROPERTY) == "true":
        return True
    if _property(_QUERY_PROPERTY) is None and _property(_GENERATION_PROPERTY) is None:
        raise UnknownBatchError(f"is_drain_pane(): {_NO_BATCH}")
    return False


def generation() -> int:
    """Return how often the query's checkpoint had been drained when the query was started: 0, then 1, ...

    Batch ids go on from generation to generation, unless the query writes to a sink that keeps none across query ids, or the drain was
    asked to accept that they start again: then a sink that remembers them needs both as its key.
    It works where `is_drain_pane` does.

    Raises
    ------
    UnknownBatchError
        The calling thread runs no batch, or a batch of a query that was started without the agent.
    """
    found = _property(_GENERATION_PROPERTY)
    if found is not None:
        return int(found)
    raise UnknownBatchError(f"generation(): {_NO_BATCH if _property(_QUERY_PROPERTY) is None else _NO_AGENT}")


_NO_BATCH = (
    "this thread runs no batch of a streaming query, so the answer is not known here: call it in the foreachBatch function itself and pass "
    "the answer on to other threads, or start them as pyspark.InheritableThread; "
    "with PYSPARK_PIN_THREAD=false it is known on executors only"
)
_NO_AGENT = (
    "this query was started without the drain agent, so nobody has counted: run the application under `python -m spark_drain_agent`, "
    "or call attach(spark) before the query is started"
)


def _property(name: str) -> str | None:
    task = TaskContext.get()
    if task is not None:
        return task.getLocalProperty(name)
    context = active_context()
    return local_property(context, name) if context is not None and pins_threads(context) else None


def marks_of_start(generation: int) -> dict[str, str | None]:
    """Return what marks the batches of a query that is started, whatever batch the thread that starts it runs for."""
    return {_GENERATION_PROPERTY: str(generation), DRAIN_PANE_PROPERTY: None}


@contextmanager
def marked(context: SparkContext, marks: Mapping[str, str | None]) -> Iterator[None]:
    """Give the queries that are started in this block, by this thread, local properties; None takes one away."""
    with in_one_jvm_thread(context):
        before = {name: local_property(context, name) for name in marks}  # of the batch that starts a query
        _set_properties(context, marks)
        with afterwards(lambda: _set_properties(context, before)):
            yield


def _set_properties(context: SparkContext, properties: Mapping[str, str | None]) -> None:
    for name, value in properties.items():
        set_local_property(context, name, value)
