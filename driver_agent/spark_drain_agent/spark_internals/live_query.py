"""The execution behind a running micro-batch query."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.spark_internals.errors import JavaError, UnsupportedSparkError, chain_of
from spark_drain_agent.spark_internals.jvm_thread import in_one_jvm_thread
from spark_drain_agent.spark_internals.live_tables import LiveSink, describe_sink, source_name
from spark_drain_agent.spark_internals.reflection import companion, private_field, set_private_field
from spark_drain_agent.spark_internals.trees import items, pairs, top_down

if TYPE_CHECKING:
    from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["LiveQuery", "OperatorState", "operator_states"]

_JOIN_MS = 200
_LOCK_MS = 200
_FRAMES = 16
_TIMERS_SET = "numRegisteredTimers"  # of TransformWithStateExec
_LIMIT = "StreamingGlobalLimit"
_DELETION = "deleteCheckpointOnStop"
_RANDOM_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class OperatorState(NamedTuple):
    """What a batch has left in an operator's state: its rows, without timers, and how many timers code has set in that batch."""

    rows: int
    timers_set: int = 0


def operator_states(query: StreamingQuery) -> tuple[OperatorState, ...]:
    """Return the state per operator after the last batch, in Spark's order; empty where Spark does not say."""
    progress = query.lastProgress
    operators = progress["stateOperators"] if progress is not None else ()
    return tuple(OperatorState(int(found["numRowsTotal"]), int(found.get("customMetrics", {}).get(_TIMERS_SET, 0))) for found in operators)


class LiveQuery:
    """A running micro-batch query's execution.

    The progress lock belongs to a thread, so a locked section must stay in one Python thread.
    """

    def __init__(self, internals: SparkInternals, execution: Any) -> None:
        self._internals = internals
        self._execution = execution
        if not hasattr(execution, "uniqueSources"):
            raise UnsupportedSparkError(f"{execution.getClass().getSimpleName()} is not a micro-batch query")

    @contextmanager
    def progress_lock(self, keep_waiting: Callable[[], None] | None = None) -> Iterator[None]:
        """Hold the lock under which the query plans and commits its batches; ``keep_waiting`` raises to give up waiting for it.

        A query holds it while its sources say how far their data goes, which takes as long as they are slow.
        """
        lock = self._execution.awaitProgressLock()
        milliseconds = self._internals.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        with in_one_jvm_thread(self._internals.context):
            while not lock.tryLock(_LOCK_MS, milliseconds):
                if keep_waiting is not None:
                    keep_waiting()
            try:
                yield
            finally:
                lock.unlock()

    @property
    def session(self) -> Any:
        """The JVM session that the query has of its own: the application's as it was at the start."""
        return self._execution.sparkSessionForStream()

    @session.setter
    def session(self, session: Any) -> None:
        set_private_field(self._execution, "sparkSessionForStream", session)

    @property
    def options(self) -> Any:
        """The options that the query gives a sink that is a DataSource V2 table: a Scala map."""
        return private_field(self._execution, "extraOptions")

    @options.setter
    def options(self, options: Any) -> None:
        set_private_field(self._execution, "extraOptions", options)

    @property
    def java_sink(self) -> Any:
        """The JVM's object of the query's sink."""
        return self._execution.sink()

    @java_sink.setter
    def java_sink(self, sink: Any) -> None:
        set_private_field(self._execution, "sink", sink)

    @property
    def file_sink(self) -> Any:
        """The JVM's object that writes files, by the confs that the application's session has at each batch; None for other sinks."""
        sink = self.java_sink
        return sink if str(sink.getClass().getSimpleName()) == "FileStreamSink" else None

    def waits_for_lock_in(self, methods: Sequence[str]) -> str:
        """Return the innermost of these methods of ``MicroBatchExecution`` that waits for the lock; "" where its thread does not wait.

        The answer stays true for as long as the caller holds the lock.
        """
        thread = self._execution.queryExecutionThread()
        if not self._execution.awaitProgressLock().hasQueuedThread(thread):
            return ""
        frames = [str(frame.getMethodName()) for frame in list(thread.getStackTrace())[:_FRAMES]]
        for frame in frames:
            for method in methods:
                if method in frame:
                    return method
        raise UnsupportedSparkError(f"a query of Spark {self._internals.spark_version} waits in an unknown place: {', '.join(frames)}")

    @property
    def kind(self) -> str:
        """Class of the execution, such as ``MicroBatchExecution``."""
        return str(self._execution.getClass().getSimpleName())

    @property
    def checkpoint_root(self) -> str:
        """URI of the checkpoint folder."""
        return str(self._execution.resolvedCheckpointRoot())

    def delete_checkpoint_at_end(self, delete: bool) -> bool:
        """Say whether the end of the query deletes its checkpoint folder, and return whether it would have.

        Spark does so with a folder that it chose itself, unless spark.sql.streaming.checkpointLocation says where to.
        """
        before = bool(private_field(self._execution, _DELETION))
        set_private_field(self._execution, _DELETION, delete)
        return before

    def chosen_checkpoint(self, default_folder: str) -> bool:
        """Return whether Spark chose the checkpoint folder itself: a temporary one, or one with a random name in the default folder."""
        if bool(private_field(self._execution, _DELETION)):
            return True
        folder, _, name = self._internals.qualified(self.checkpoint_root).rpartition("/")
        return bool(default_folder) and folder == default_folder.rstrip("/") and _RANDOM_NAME.fullmatch(name) is not None

    @property
    def sink(self) -> LiveSink:
        """What the query really writes to."""
        return describe_sink(self._execution.sink())

    @property
    def streams(self) -> list[Any]:
        """The sources, in the order of the plan; empty before the first one."""
        return [*items(self._execution.sources())]

    @property
    def streams_by_id(self) -> dict[str, Any]:
        """The sources by what the offset log calls them: their names, or else their numbers in the order of the plan."""
        try:
            found = dict(pairs(self._execution.sourceIdMap()))
        except JavaError:  # before Spark 4.2 none has a name
            found = {}
        named = not all(source.isdigit() for source in found)
        return found if named else {str(index): stream for index, stream in enumerate(self.streams)}

    @property
    def sources(self) -> list[str]:
        """What the sources are, in the order of the plan."""
        return [source_name(stream) for stream in self.streams]

    def take_sources(self) -> Any:
        """Take the sources away, so that no new batch reads data, and return them for `put_sources`; call it under the lock."""
        taken = self._execution.uniqueSources()
        self.put_sources(taken.empty())
        return taken

    def put_sources(self, sources: Any) -> None:
        """Give the sources back; the query reads on as if nothing had been."""
        getattr(self._execution, "uniqueSources_$eq")(sources)

    def stop_sources(self) -> None:
        """Let every source close what it has open, as the end of a query does."""
        self._execution.stopSources()

    @property
    def initialized(self) -> bool:
        """Whether the query has passed its start-up and has sources."""
        return int(self._execution.uniqueSources().size()) > 0

    @property
    def active(self) -> bool:
        """Whether further batches are to come: neither stopped nor failed."""
        return bool(self._execution.isActive())

    @property
    def thread_alive(self) -> bool:
        """Whether the query's thread still runs; its `isActive` turns false before that."""
        return bool(self._execution.queryExecutionThread().isAlive())

    def wait_until_ended(self, keep_waiting: Callable[[], None]) -> None:
        """Wait for the query's thread to end; ``keep_waiting`` raises to give up."""
        while self.thread_alive:
            keep_waiting()
            self._execution.queryExecutionThread().join(_JOIN_MS)

    @property
    def trigger_active(self) -> bool:
        """Whether a batch is being planned or run now."""
        return bool(self._execution.status().isTriggerActive())

    @property
    def error(self) -> str:
        """The exception that ended the query and its causes, or ""."""
        found = self._execution.exception()
        return chain_of(found.get()) if found.isDefined() else ""

    @property
    def planned_a_batch(self) -> bool:
        """Whether a batch was planned since this start; without one Spark plans none for a watermark alone."""
        return self._execution.lastExecution() is not None

    @property
    def planned_batch_id(self) -> int | None:
        """Id of the last batch that was planned since this start; None where there is none."""
        executed = self._execution.lastExecution()
        return None if executed is None else int(executed.currentBatchId())

    @property
    def planned_limits(self) -> int | None:
        """How many limits with state the last batch has that was planned since this start; None where there is none."""
        executed = self._execution.lastExecution()
        return None if executed is None else sum(str(each.nodeName()) == _LIMIT for each in top_down(executed.executedPlan()))

    @property
    def last_batch_id(self) -> int:
        """Id of the last batch that this run has executed, or that it has found executed by the one before.

        It is -1 where there is none, and -2 where it was ended before it had looked.
        """
        executed = self._execution.lastExecution()
        if executed is not None:
            return int(executed.currentBatchId())
        try:
            return int(self._execution.getLatestExecutionContext().batchId()) - 1
        except JavaError:  # Spark 3.5
            return int(self._execution.currentBatchId()) - 1

    @property
    def watermark_ms(self) -> int | None:
        """Watermark of the newest batch that was planned; None where Spark does not say. Call it under the lock."""
        try:
            holder = self._execution.getLatestExecutionContext()
        except JavaError:  # Spark 3.5
            holder = self._execution
        try:
            return int(holder.offsetSeqMetadata().batchWatermarkMs())
        except (*JavaError, AttributeError, TypeError):
            return None

    def raise_watermark(self, next_batch: int, watermark_ms: int) -> None:
        """Let the query plan its next batch at a watermark; call it under the lock, with no batch in flight.

        The propagator remembers the watermark that it has already told for the next batch, and the query would die of a second one.
        """
        try:
            private_field(self._execution, "watermarkPropagator").purge(next_batch)
            self._execution.watermarkTracker().setWatermark(watermark_ms)
        except (*JavaError, AttributeError, TypeError) as error:
            raise UnsupportedSparkError(f"the watermark of Spark {self._internals.spark_version} cannot be raised: {error}") from error

    def local_property(self, name: str) -> str | None:
        """Return a property that the query's jobs carry to their tasks; None where it is not set."""
        found = self._local_properties().getProperty(name)
        return None if found is None else str(found)

    def set_local_property(self, name: str, value: str | None) -> None:
        """Set a property that the query's next jobs carry to their tasks; None takes it away."""
        properties = self._local_properties()
        if value is None:
            properties.remove(name)
        else:
            properties.setProperty(name, value)

    def _local_properties(self) -> Any:
        """Return the local properties of the query's thread.

        Spark offers them for the calling thread only; java.lang is open to this, since Spark itself starts its JVM with
        ``--add-opens java.base/java.lang``.
        """
        thread = self._execution.queryExecutionThread()
        threads = self._internals.jvm.java.lang.Class.forName("java.lang.Thread").getDeclaredField("inheritableThreadLocals")
        threads.setAccessible(True)
        table = threads.get(thread)
        local = self._internals.scala_context.localProperties()
        for method in table.getClass().getDeclaredMethods():
            if method.getName() == "getEntry":
                method.setAccessible(True)
                arguments = self._internals.object_array(local)
                entry = method.invoke(table, arguments)
                value_field = entry.getClass().getDeclaredField("value")
                value_field.setAccessible(True)
                return value_field.get(entry)
        raise UnsupportedSparkError("the local properties of a thread cannot be reached in this JVM")

    def terminate(self) -> None:
        """Let no further batch begin; call it under the lock. `StreamingQuery.stop` would cancel a running one."""
        state = self._execution.state()
        package = str(state.get().getClass().getName()).rsplit(".", 1)[0]
        state.set(companion(self._internals.jvm, f"{package}.TERMINATED"))

    def interrupt(self) -> None:
        """Wake the query's thread from its sleep between triggers; only safe when terminated and no trigger is active."""
        self._execution.queryExecutionThread().interrupt()
