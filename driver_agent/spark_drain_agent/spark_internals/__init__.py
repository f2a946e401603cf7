"""Every private Spark class and attribute that the agent touches, behind one module.

Structured Streaming has no public way to stop reading without stopping the query, to learn a query's checkpoint before it starts, or
to start the same query elsewhere. What follows was checked on Spark 4.2 (class names differ in 3.5: `_first_class` knows both).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark import RDD, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = [
    "CapturedWriter",
    "JavaError",
    "LiveQuery",
    "LogicalOperator",
    "SparkInternals",
    "UnsupportedSparkError",
    "active_context",
    "classic",
    "in_words",
    "state_rows",
]

JavaError = Py4JError
"""What a call into the JVM raises."""

_CHECKPOINT_MANAGERS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager",
    "org.apache.spark.sql.execution.streaming.CheckpointFileManager",
)
_WATERMARK_KEY = "spark.watermarkDelayMs"


def in_words(error: Exception) -> str:
    """Return an exception's message, of one from the JVM without the stack trace, which py4j makes part of it."""
    return str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)


class UnsupportedSparkError(Exception):
    """This Spark lacks something that the agent needs; the message names it."""


def active_context() -> SparkContext | None:
    """Return this process' context, or None in an executor's Python worker and before a session was made."""
    return SparkContext._active_spark_context


def classic(session: object) -> bool:
    """Return whether the session runs in this process' JVM (Spark Connect sessions do not)."""
    return isinstance(session, SparkSession) and hasattr(session, "_jsparkSession")


def state_rows(query: StreamingQuery) -> tuple[int, ...]:
    """Return the state rows per operator after the last batch, in Spark's order; empty where Spark does not say."""
    progress = query.lastProgress
    return tuple(int(operator["numRowsTotal"]) for operator in progress["stateOperators"]) if progress is not None else ()


@dataclass(frozen=True)
class LogicalOperator:
    """A node of a streaming query's analyzed plan that may keep state.

    Parameters
    ----------
    name
        Catalyst's node name, such as ``Aggregate``.
    watermarked
        Whether an event-time column with a watermark is among its keys, so that an infinite watermark evicts its state.
    timers
        Whether user code can set timers or timeouts.
    processing_time
        Whether those timers follow the clock, so that the query plans batch after batch without any data.
    """

    name: str
    watermarked: bool
    timers: bool = False
    processing_time: bool = False


@dataclass(frozen=True)
class CapturedWriter:
    """A DataStreamWriter as it was when its query was started; later changes to the user's object do not reach it.

    Parameters
    ----------
    dataset
        JVM Dataset.
    fields
        JVM field name to value, all but the dataset.
    launch
        Starts a query from a JVM writer, by path, table or neither.
    python_query
        Wraps a JVM query as pyspark does for this writer.
    path, table
        What the query was started into, where that was not among the options.
    """

    dataset: Any
    fields: dict[str, Any]
    launch: Callable[[Any], Any]
    python_query: Callable[[Any], StreamingQuery]
    path: str | None = None
    table: str | None = None

    @property
    def source(self) -> str:
        """Short name of the sink, such as ``kafka`` or ``foreachBatch``."""
        return str(self.fields["source"])

    @property
    def output_mode(self) -> str:
        """``Append``, ``Update`` or ``Complete``."""
        return str(self.fields["outputMode"].toString())

    @property
    def trigger(self) -> str:
        """Class of the trigger without package and ``$``, such as ``ProcessingTimeTrigger``."""
        return str(self.fields["trigger"].getClass().getSimpleName()).rstrip("$")

    @property
    def interval_ms(self) -> int | None:
        """Milliseconds between two triggers, 0 for one after the other, None where the trigger has no interval."""
        trigger = self.fields["trigger"]
        return int(trigger.intervalMs()) if self.trigger == "ProcessingTimeTrigger" else None

    def option(self, name: str) -> str | None:
        """Return a writer option, case-insensitively."""
        found = self.fields["extraOptions"].get(name)
        return str(found.get()) if found.isDefined() else None

    @property
    def query_name(self) -> str:
        """The query's name, or "" where it has none."""
        return self.option("queryName") or ""


class SparkInternals:
    """Access to the JVM behind one session.

    Parameters
    ----------
    session
        A classic (not Connect) session.
    """

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.jvm: Any = session._jvm
        self._jsession: Any = session._jsparkSession

    def _first_class(self, names: Sequence[str]) -> Any:
        for name in names:
            try:
                self.jvm.java.lang.Class.forName(name)
            except Py4JJavaError:
                continue
            found: Any = self.jvm
            for part in name.split("."):
                found = getattr(found, part)
            return found
        raise UnsupportedSparkError(f"Spark {self.spark_version} has none of {', '.join(names)}")

    @property
    def spark_version(self) -> str:
        """Version of the running Spark."""
        return str(self.session.version)

    @property
    def context(self) -> SparkContext:
        """The session's SparkContext."""
        return self.session.sparkContext

    @property
    def application_id(self) -> str:
        """``spark.app.id``: the run id of drains."""
        return str(self.context.applicationId)

    @property
    def stopped(self) -> bool:
        """Whether the SparkContext was stopped, so that nothing runs in it any more."""
        java_context: Any = self.context._jsc  # None once PySpark has stopped it
        return java_context is None or bool(java_context.sc().isStopped())

    def conf(self, name: str, default: str = "") -> str:
        """Return a SparkConf entry (the application's, not the session's)."""
        return str(self.context.getConf().get(name, default))

    def session_conf(self, name: str, default: str = "") -> str:
        """Return a session configuration entry."""
        return str(self.session.conf.get(name, default))

    def session_state(self) -> Any:
        """Return the session's SessionState."""
        return self._jsession.sessionState()

    def sql_conf(self) -> Any:
        """Return the session's SQLConf."""
        return self._jsession.sessionState().conf()

    def hadoop_conf(self) -> Any:
        """Return a Hadoop Configuration with the session's ``spark.hadoop`` settings."""
        return self._jsession.sessionState().newHadoopConf()

    def checkpoint_file_manager(self, path: Any, hadoop_conf: Any) -> Any:
        """Return Spark's own CheckpointFileManager for a Hadoop path."""
        return self._first_class(_CHECKPOINT_MANAGERS).create(path, hadoop_conf)

    # -- writers -------------------------------------------------------------------------------------------------------------------

    def capture(self, writer: DataStreamWriter, path: str | None = None, table: str | None = None) -> CapturedWriter:
        """Remember everything a writer would start its query with, into a path, into a table, or by its options alone."""

        def launch(jwriter: Any) -> Any:
            if table is not None:
                return jwriter.toTable(table)
            return jwriter.start() if path is None else jwriter.start(path)

        jwriter = writer._jwrite
        fields = {}
        dataset = None
        for field in jwriter.getClass().getDeclaredFields():
            field.setAccessible(True)
            if field.getName() in ("ds", "df"):
                dataset = dataset or field.get(jwriter)
            elif not self.jvm.java.lang.reflect.Modifier.isStatic(field.getModifiers()):
                fields[str(field.getName())] = field.get(jwriter)
        if dataset is None or not {"extraOptions", "trigger", "outputMode", "source"} <= fields.keys():
            raise UnsupportedSparkError(f"the DataStreamWriter of Spark {self.spark_version} is not known: {sorted(fields)}")
        return CapturedWriter(dataset, fields, launch, writer._sq, path, table)

    def launch_once_at(self, captured: CapturedWriter, checkpoint: str) -> StreamingQuery:
        """Start the captured query for one batch on another checkpoint folder.

        A logged but uncommitted batch is executed again; without one, Spark would plan a new batch from unread data, so callers
        make sure that there is one.
        """
        return self._launch_at(captured, checkpoint, self.jvm.org.apache.spark.sql.streaming.Trigger.Once())

    def launch_available_at(self, captured: CapturedWriter, checkpoint: str) -> StreamingQuery:
        """Start the captured query on a checkpoint folder for what its sources have now, in batches of its own size."""
        return self._launch_at(captured, checkpoint, self.jvm.org.apache.spark.sql.streaming.Trigger.AvailableNow())

    def _launch_at(self, captured: CapturedWriter, checkpoint: str, trigger: Any) -> StreamingQuery:
        constructor = captured.dataset.getClass().getMethod("writeStream", self.array(self.jvm.java.lang.Class))
        jwriter = constructor.invoke(captured.dataset, self.array(self.jvm.java.lang.Object))
        for field in jwriter.getClass().getDeclaredFields():
            if str(field.getName()) in captured.fields:
                field.setAccessible(True)
                field.set(jwriter, captured.fields[str(field.getName())])
        jwriter = jwriter.option("checkpointLocation", checkpoint).trigger(trigger)
        return captured.python_query(captured.launch(jwriter))

    def array(self, of: Any, length: int = 0) -> Any:
        """Return a Java array, empty by default, for calls by reflection."""
        gateway = self.context._gateway
        assert gateway is not None
        return gateway.new_array(of, length)

    def object_array(self, *items: Any) -> Any:
        """Return a Java array of objects."""
        array = self.array(self.jvm.java.lang.Object, len(items))
        for index, item in enumerate(items):
            array[index] = item
        return array

    def checkpoint_location(self, captured: CapturedWriter) -> str | None:
        """Return the checkpoint folder as the writer will resolve it, or None for a temporary one."""
        location = captured.option("checkpointLocation")
        if location is None:
            base = self.session_conf("spark.sql.streaming.checkpointLocation")
            if not base or not captured.query_name:
                return None
            location = self.jvm.org.apache.hadoop.fs.Path(base, captured.query_name).toString()
        return self.qualified(location)

    def qualified(self, location: str) -> str:
        """Return a path with the scheme and authority that Hadoop gives it."""
        path = self.jvm.org.apache.hadoop.fs.Path(location)
        return str(path.getFileSystem(self.hadoop_conf()).makeQualified(path).toString())

    # -- plans ---------------------------------------------------------------------------------------------------------------------

    def analyzed_text(self, captured: CapturedWriter) -> str:
        """Return the analyzed logical plan and schema as text; contains ids that differ from run to run."""
        return str(captured.dataset.queryExecution().analyzed().treeString()) + str(captured.dataset.schema().json())

    def stateful_operators(self, captured: CapturedWriter) -> list[LogicalOperator]:
        """Return the operators of the plan that keep state between batches, top down."""
        return list(self._stateful(captured.dataset.queryExecution().analyzed()))

    def _stateful(self, plan: Any) -> Iterator[LogicalOperator]:
        name = str(plan.nodeName())
        children = [plan.children().apply(index) for index in range(plan.children().size())]
        if plan.isStreaming() and children and children[0].isStreaming():
            if name == "Aggregate":
                yield LogicalOperator(name, self._watermarked(plan.groupingExpressions()))
            elif name == "Distinct":  # an aggregation over all columns, once it is optimized
                yield LogicalOperator("Aggregate", self._watermarked(plan.output()))
            elif name in ("Deduplicate", "DeduplicateWithinWatermark"):
                yield LogicalOperator(name, self._watermarked(plan.keys()))
            elif name == "Join" and children[1].isStreaming():
                yield LogicalOperator(name, all(self._watermarked(child.output()) for child in children))
            elif name.startswith("FlatMapGroups") and name != "FlatMapGroupsInPandas":
                timeout = str(plan.timeout().toString())
                timers = timeout != "NoTimeout"
                yield LogicalOperator(name, watermarked=timers, timers=timers, processing_time=timeout.startswith("ProcessingTime"))
            elif name.startswith("TransformWithState"):
                mode = str(plan.timeMode().toString())
                timers = mode not in ("None", "NoTime")
                yield LogicalOperator(name, watermarked=timers, timers=timers, processing_time=mode.startswith("ProcessingTime"))
            elif name in ("GlobalLimit", "Limit"):
                yield LogicalOperator(name, watermarked=False)
        for child in children:
            yield from self._stateful(child)

    def _watermarked(self, expressions: Any) -> bool:
        for index in range(expressions.size()):
            expression = expressions.apply(index)
            try:
                if expression.metadata().contains(_WATERMARK_KEY):
                    return True
            except Py4JError:  # not a named expression: it cannot carry a watermark
                continue
        return False

    # -- running queries -----------------------------------------------------------------------------------------------------------

    def live(self, query: StreamingQuery) -> LiveQuery:
        """Return the handle on a running query's execution."""
        jquery = query._jsq
        execution = jquery.streamingQuery() if hasattr(jquery, "streamingQuery") and "Wrapper" in jquery.getClass().getName() else jquery
        return LiveQuery(self, execution)

    def rdd_pinned_to(self, hosts_and_ids: Sequence[tuple[str, str]]) -> RDD[str]:
        """Return an RDD with one partition per executor, each holding the executor's id and preferring to run there.

        Barrier mode would be simpler, but Spark refuses it under dynamic allocation; a preferred location of the form
        ``executor_HOST_ID`` names one executor process (TaskLocation in Spark's scheduler).
        """
        rows = self.jvm.java.util.ArrayList()
        for host, executor_id in hosts_and_ids:
            locations = self.jvm.java.util.ArrayList()
            locations.add(f"executor_{host}_{executor_id}")
            # One pickled list per element is the format of PySpark's batched serializer.
            rows.add(self.jvm.scala.Tuple2(bytearray(pickle.dumps([executor_id])), self._scala_seq(locations)))
        tag = self.jvm.scala.reflect.ClassTag.apply(self.jvm.java.lang.Class.forName("[B"))
        scala_rdd = self.context._jsc.sc().makeRDD(self._scala_seq(rows), tag)
        return RDD(scala_rdd.toJavaRDD(), self.context, self.context.serializer)

    def _scala_seq(self, java_list: Any) -> Any:
        return self.jvm.org.apache.spark.api.python.PythonUtils.toSeq(java_list)  # Spark's own, for Scala 2.12 and 2.13

    def executors(self) -> list[tuple[str, str]]:
        """Return id and host of every active executor; the driver is not one."""
        listed = self.context._jsc.sc().statusStore().executorList(True)
        found = [listed.apply(index) for index in range(listed.size())]
        return [(str(item.id()), str(item.hostPort()).rsplit(":", 1)[0]) for item in found if str(item.id()) != "driver"]


class LiveQuery:
    """A running micro-batch query's execution.

    The progress lock belongs to a thread, so a locked section must stay in one Python thread (PySpark pins each to a JVM thread).
    """

    def __init__(self, internals: SparkInternals, execution: Any) -> None:
        self._internals = internals
        self._execution = execution
        if not hasattr(execution, "uniqueSources"):
            raise UnsupportedSparkError(f"{execution.getClass().getSimpleName()} is not a micro-batch query")

    @contextmanager
    def progress_lock(self) -> Iterator[None]:
        """Hold the lock under which the query plans and commits its batches."""
        lock = self._execution.awaitProgressLock()
        lock.lock()
        try:
            yield
        finally:
            lock.unlock()

    @property
    def kind(self) -> str:
        """Class of the execution, such as ``MicroBatchExecution``."""
        return str(self._execution.getClass().getSimpleName())

    @property
    def checkpoint_root(self) -> str:
        """URI of the checkpoint folder."""
        return str(self._execution.resolvedCheckpointRoot())

    def delete_checkpoint_at_end(self, delete: bool) -> None:
        """Say whether the end of the query deletes its checkpoint folder, as Spark does with one that it chose itself."""
        holder = self._execution.getClass()
        while holder.getSimpleName() != "StreamExecution":
            holder = holder.getSuperclass()
        field = holder.getDeclaredField("deleteCheckpointOnStop")
        field.setAccessible(True)
        field.set(self._execution, delete)

    @property
    def sink(self) -> str:
        """Class of the sink without package."""
        return str(self._execution.sink().getClass().getSimpleName()).rstrip("$")

    @property
    def streams(self) -> list[Any]:
        """The sources, in the order of the offset log; empty before the first plan."""
        found = self._execution.sources()
        return [found.apply(index) for index in range(found.size())]

    @property
    def sources(self) -> list[str]:
        """Descriptions of the sources, in the order of the offset log."""
        return [str(stream.toString()) for stream in self.streams]

    def take_sources(self) -> Any:
        """Take the sources away, so that no new batch reads data, and return them for `put_sources`; call it under the lock."""
        taken = self._execution.uniqueSources()
        self.put_sources(taken.empty())
        return taken

    def put_sources(self, sources: Any) -> None:
        """Give the sources back; the query reads on as if nothing had been."""
        getattr(self._execution, "uniqueSources_$eq")(sources)

    @property
    def initialized(self) -> bool:
        """Whether the query has passed its start-up and has sources."""
        return int(self._execution.uniqueSources().size()) > 0

    @property
    def thread_alive(self) -> bool:
        """Whether the query's thread still runs; its `isActive` turns false before that."""
        return bool(self._execution.queryExecutionThread().isAlive())

    def join(self, seconds: float) -> None:
        """Wait for the query's thread to end, at most so long."""
        self._execution.queryExecutionThread().join(int(seconds * 1000))

    @property
    def trigger_active(self) -> bool:
        """Whether a batch is being planned or run now."""
        return bool(self._execution.status().isTriggerActive())

    @property
    def error(self) -> str:
        """The exception that ended the query, or ""."""
        found = self._execution.exception()
        return str(found.get().getMessage()) if found.isDefined() else ""

    @property
    def planned_a_batch(self) -> bool:
        """Whether a batch was planned since this start; without one Spark plans none for a watermark alone."""
        return self._execution.lastExecution() is not None

    def raise_watermark(self, next_batch: int, watermark_ms: int) -> None:
        """Let the query plan its next batch at a watermark; call it under the lock, with no batch in flight.

        The propagator remembers the watermark that it has already told for the next batch, and the query would die of a second one.
        """
        try:
            self._private("watermarkPropagator").purge(next_batch)
            self._execution.watermarkTracker().setWatermark(watermark_ms)
        except (Py4JError, TypeError) as error:
            raise UnsupportedSparkError(f"the watermark of Spark {self._internals.spark_version} cannot be raised: {error}") from error

    def _private(self, name: str) -> Any:
        holder = self._execution.getClass()
        while holder is not None:
            for field in holder.getDeclaredFields():
                if str(field.getName()).rsplit("$", 1)[-1] == name:
                    field.setAccessible(True)
                    return field.get(self._execution)
            holder = holder.getSuperclass()
        raise UnsupportedSparkError(f"{self.kind} of Spark {self._internals.spark_version} has no {name}")

    def set_local_property(self, name: str, value: str) -> None:
        """Set a property that the query's next jobs carry to their tasks.

        Local properties belong to a thread and Spark offers them for the calling one only; java.lang is open to this, since Spark
        itself starts its JVM with ``--add-opens java.base/java.lang``.
        """
        thread = self._execution.queryExecutionThread()
        threads = self._internals.jvm.java.lang.Class.forName("java.lang.Thread").getDeclaredField("inheritableThreadLocals")
        threads.setAccessible(True)
        table = threads.get(thread)
        local = self._internals.context._jsc.sc().localProperties()
        for method in table.getClass().getDeclaredMethods():
            if method.getName() == "getEntry":
                method.setAccessible(True)
                arguments = self._internals.object_array(local)
                entry = method.invoke(table, arguments)
                value_field = entry.getClass().getDeclaredField("value")
                value_field.setAccessible(True)
                value_field.get(entry).setProperty(name, value)
                return
        raise UnsupportedSparkError("the local properties of a thread cannot be reached in this JVM")

    def terminate(self) -> None:
        """Let no further batch begin; call it under the lock. `StreamingQuery.stop` would cancel a running one."""
        state = self._execution.state()
        package = str(state.get().getClass().getName()).rsplit(".", 1)[0]
        terminated = self._internals.jvm.java.lang.Class.forName(f"{package}.TERMINATED$").getField("MODULE$").get(None)
        state.set(terminated)

    def interrupt(self) -> None:
        """Wake the query's thread from its sleep between triggers; only safe when terminated and no trigger is active."""
        self._execution.queryExecutionThread().interrupt()
