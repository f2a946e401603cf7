"""Access to the JVM behind one session.

Structured Streaming has no public way to learn a query's checkpoint before it starts, or to start the same query elsewhere. What
follows was checked on Spark 4.2 (class names differ in 3.5: `first_class` knows both).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]  # py4j ships no types
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_drain_agent.spark_internals.at_start import at_start
from spark_drain_agent.spark_internals.empty_limits import keep_empty_limits
from spark_drain_agent.spark_internals.errors import JavaError, UnsupportedSparkError
from spark_drain_agent.spark_internals.java_names import names_of
from spark_drain_agent.spark_internals.jvm_process import jvm_ended
from spark_drain_agent.spark_internals.live_query import LiveQuery
from spark_drain_agent.spark_internals.operators import LIMITS, LogicalOperator, operators_of, watermarks_of
from spark_drain_agent.spark_internals.plan_text import PlanText
from spark_drain_agent.spark_internals.reflection import private_field, set_private_field
from spark_drain_agent.spark_internals.relaunch import active, prepare_relaunch, share_catalogs
from spark_drain_agent.spark_internals.schema_log import read_in
from spark_drain_agent.spark_internals.sink_code import sink_code, sink_text
from spark_drain_agent.spark_internals.sink_options import give_own_options, is_a_librarys
from spark_drain_agent.spark_internals.source_options import names_given
from spark_drain_agent.spark_internals.unsteady import without_seeds
from spark_drain_agent.spark_internals.writer import SAME_VERSION_CONF, VERSION_CONF, CapturedWriter

__all__ = [
    "SparkInternals",
    "active_context",
    "classic",
    "connect_server_here",
    "elements",
    "is_stopped",
    "submitted_conf",
]

_VALUE_CONFS = ("spark.sql.session.timeZone", "spark.sql.legacy.timeParserPolicy", "spark.sql.ansi.enabled")
"""What the same text becomes as a time or a number depends on these."""
_CHECKPOINT_MANAGERS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager",
    "org.apache.spark.sql.execution.streaming.FileContextBasedCheckpointFileManager",
)
_EXECUTOR_ID, _LOG_URL = "SPARK_EXECUTOR_ID", "SPARK_LOG_URL_STDOUT"
"""Variables in the environment of an executor's process."""
_POLL_SECONDS = 0.02
_seen: SparkContext | None = None
_DEFAULT_FOLDER = "spark.sql.streaming.checkpointLocation"
"""Conf: where named queries have their checkpoints that say nothing of it themselves."""
_DATASETS = ("org.apache.spark.sql.classic.Dataset", "org.apache.spark.sql.Dataset")
_SESSIONS = ("org.apache.spark.sql.classic.SparkSession", "org.apache.spark.sql.SparkSession")


def active_context() -> SparkContext | None:
    """Return this process' context, or None in an executor's Python worker and before a session was made.

    PySpark has none either once a context that was stopped before is stopped again, while another one runs.
    """
    running = _seen is not None and _seen._jsc is not None
    return SparkContext._active_spark_context or (_seen if running else None)


def is_stopped(context: SparkContext) -> bool:
    """Return whether PySpark has stopped it."""
    java_context: object = context._jsc
    return java_context is None


def classic(session: object) -> bool:
    """Return whether the session runs in this process' JVM (Spark Connect sessions do not)."""
    return isinstance(session, SparkSession) and hasattr(session, "_jsparkSession")


def connect_server_here() -> bool:
    """Return whether the classic session of this process is but the server of its Spark Connect sessions (``remote("local")``)."""
    return "SPARK_LOCAL_REMOTE" in os.environ


def submitted_conf(name: str) -> str | None:
    """Return an entry of the conf of spark-submit, where that started this process, else None; makes no SparkContext."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    SparkContext._ensure_initialized()
    return SparkConf().get(name)


class SparkInternals:
    """Access to the JVM behind one session.

    Parameters
    ----------
    session
        A classic (not Connect) session.
    as_of
        A copy of it in the JVM, whose confs, schema, views and functions count; by default those that the session has.
    """

    def __init__(self, session: SparkSession, as_of: Any = None) -> None:
        global _seen  # noqa: PLW0603  # one context at a time runs in a process
        if session.sparkContext._jsc is not None:
            _seen = session.sparkContext
        self.session = session
        self.jvm: Any = names_of(session._jvm)
        self._jsession: Any = session._jsparkSession
        self._as_of: Any = self._jsession if as_of is None else as_of

    def first_class(self, names: Sequence[str]) -> Any:
        """Return the first class that this Spark has, of names of one class in several versions."""
        for name in names:
            try:
                self.jvm.java.lang.Class.forName(name)
            except JavaError:
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
    def scala_context(self) -> Any:
        """The JVM's SparkContext."""
        return self.context._jsc.sc()

    @property
    def application_id(self) -> str:
        """``spark.app.id``: the run id of drains."""
        return str(self.context.applicationId)

    @property
    def stopped(self) -> bool:
        """Whether the SparkContext was stopped, so that nothing runs in it any more."""
        java_context: Any = self.context._jsc  # None once PySpark has stopped it
        try:
            return java_context is None or bool(java_context.sc().isStopped())
        except JavaError:
            return True  # such as a connection that is gone

    @property
    def stop_returned(self) -> bool:
        """Whether PySpark has stopped the SparkContext: what ran in it has ended, or can only fail."""
        return is_stopped(self.context)

    def ends_with(self, holder: SparkSession | SparkContext) -> bool:
        """Return whether to stop this session or context stops the SparkContext behind this session, as far as is known."""
        context = holder.sparkContext if isinstance(holder, SparkSession) else holder
        java_context: Any = getattr(context, "_jsc", None)  # it is not there where the context could not be made
        own: Any = self.context._jsc
        if java_context is None or own is None:
            return False
        try:
            return bool(java_context.sc() == own.sc()) and not own.sc().isStopped()
        except JavaError:
            return True  # such as a connection that is gone

    @property
    def jvm_ended(self) -> bool:
        """Whether Spark's JVM is gone: the one that this process has started, or the one that has started it (spark-submit)."""
        return jvm_ended(self.context._gateway)

    def take_interrupt(self) -> None:
        """Take the interrupt of the calling thread from it, if there is one, such as that of a query that was stopped in a listener's call.

        Spark would remove the listener (`ListenerBus`); the query looks at its own state next, which says that it was stopped.
        """
        self.jvm.java.lang.Thread.interrupted()

    def manages(self, streams: StreamingQueryManager) -> bool:
        """Return whether this is the manager of the session's queries."""
        return bool(self.session.streams._jsqm == streams._jsqm)

    def manager_id(self, streams: StreamingQueryManager) -> int:
        """Return what tells the manager of a session's queries from that of any other session, without keeping either."""
        return int(self.jvm.java.lang.System.identityHashCode(streams._jsqm))

    def conf(self, name: str, default: str = "") -> str:
        """Return a SparkConf entry (the application's, not the session's)."""
        return str(self.context._conf.get(name, default))  # getConf() asks for each entry there is

    def session_conf(self, name: str, default: str = "") -> str:
        """Return a session configuration entry."""
        return str(self._as_of.conf().get(name, default))

    def java_session(self) -> Any:
        """Return the session's JVM object."""
        return self._as_of

    def session_state(self) -> Any:
        """Return the session's SessionState."""
        return self._as_of.sessionState()

    def sql_conf(self) -> Any:
        """Return the session's SQLConf."""
        return self.session_state().conf()

    def hadoop_conf(self) -> Any:
        """Return a Hadoop Configuration with the session's ``spark.hadoop`` settings."""
        return self.session_state().newHadoopConf()

    def checkpoint_file_manager(self, path: Any, hadoop_conf: Any) -> Any:
        """Return Spark's own CheckpointFileManager for a Hadoop path: always the one that can replace a file.

        Where Hadoop has no FileContext for a scheme, or a conf says so, Spark takes another one, which may leave an existing file as it is
        without an error (measured on HDFS); Spark's own files have a new name each.
        """
        return self.first_class(_CHECKPOINT_MANAGERS)(path, hadoop_conf)

    # -- writers -------------------------------------------------------------------------------------------------------------------

    def capture(self, writer: DataStreamWriter, path: str | None = None, table: str | None = None) -> CapturedWriter:
        """Remember everything a writer would start its query with, into a path, into a table, or by its options alone.

        The application may change the current catalog and schema later, so the table gets its full name now.
        """
        table = None if table is None else self._name_in_start(table)

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
        confs = tuple(str(self._as_of.conf().get(name)) for name in _VALUE_CONFS)
        version, same = self.session_conf(VERSION_CONF), self.session_conf(SAME_VERSION_CONF)
        code, properties = sink_code(self, fields), self.local_properties()
        return CapturedWriter(dataset, fields, launch, writer._sq, path, table, code, confs, properties, version, same)

    def local_properties(self) -> tuple[tuple[str, str], ...]:
        """Return the local properties of the calling thread, which those that it starts inherit."""
        java_context: Any = self.context._jsc  # None once PySpark has stopped it, which the start will say
        if java_context is None:
            return ()
        properties = java_context.sc().getLocalProperties()
        names = elements(self.jvm.java.util.ArrayList(properties.stringPropertyNames()))
        return tuple((str(name), str(properties.getProperty(name))) for name in names)

    def cloned_session(self, of: Any = None) -> Any:
        """Return a JVM session with the confs, schema, views and functions that one of the JVM, by default this one, has now."""
        cloned = (self._as_of if of is None else of).cloneSession()
        cloned.sessionState().catalog()  # schema and views are copied when they are first asked for
        return cloned

    def starting_session(self, of: Any, application: Any) -> Any:
        """Return a JVM session as one is, whose starts of queries are those of the application's session (`SessionState`)."""
        session, java = self.cloned_session(of), self.jvm.java.lang
        share_catalogs(session, application)
        manager = java.invoke.MethodHandles.constant(java.Class.forName("java.lang.Object"), application.streams())
        builder = java.invoke.MethodHandleProxies.asInterfaceInstance(java.Class.forName("scala.Function0"), manager)
        set_private_field(session.sessionState(), "streamingQueryManagerBuilder", builder)
        return session

    def in_session(self, captured: CapturedWriter, session: Any, *, listeners: bool) -> CapturedWriter:
        """Return a writer for a start in a JVM session that is not the application's, whose ``listeners`` are told of it or not."""
        prepare_relaunch(session, self._jsession, listeners=listeners)
        if captured.table is not None:
            share_catalogs(session, self._jsession)
        return self._with_rows(captured, session, read_in(self, captured.dataset.queryExecution().analyzed(), session))

    def of_session(self, captured: CapturedWriter, session: Any) -> CapturedWriter:
        """Return a writer whose sink and table are looked up in a JVM session; what it reads is still read in its own."""
        return self._with_rows(captured, session, captured.dataset.queryExecution().analyzed())

    def _with_rows(self, captured: CapturedWriter, session: Any, plan: Any) -> CapturedWriter:
        return replace(captured, dataset=self.first_class(_DATASETS).ofRows(session, plan))

    def placed_at(self, captured: CapturedWriter, location: str) -> CapturedWriter:
        """Return a writer for a start at a checkpoint folder, whatever the session's default folder is then."""
        jwriter = self.java_writer(captured).option("checkpointLocation", location)
        return replace(captured, fields=captured.fields | {"extraOptions": private_field(jwriter, "extraOptions")})

    def full_name(self, table: str) -> str:
        """Return a table's name with catalog and schema, found as Spark finds them."""
        parsed = self._parsed(table)
        return table if parsed is None else self._in_full(parsed)

    def _name_in_start(self, table: str) -> str:
        """Return the same, but the name of a temporary view as it is: Spark starts no query into one."""
        parsed = self._parsed(table)
        return table if parsed is None or self.session_state().catalog().isTempView(parsed) else self._in_full(parsed)

    def _parsed(self, table: str) -> Any:
        try:
            return self.session_state().sqlParser().parseMultipartIdentifier(table)
        except JavaError:
            return None  # the start will say what is wrong with it

    def _in_full(self, parsed: Any) -> str:
        manager = self.session_state().catalogManager()
        parts = [str(parsed.apply(index)) for index in range(parsed.size())]
        if len(parts) == 1 or not manager.isCatalogRegistered(parts[0]):
            namespace = [str(part) for part in manager.currentNamespace()] if len(parts) == 1 else []
            parts = [str(manager.currentCatalog().name()), *namespace, *parts]
        return ".".join(f"`{part.replace('`', '``')}`" for part in parts)

    def launch_once_at(self, captured: CapturedWriter, checkpoint: str) -> StreamingQuery:
        """Start the captured query for one batch on another checkpoint folder.

        A logged but uncommitted batch is executed again; without one, Spark would plan a new batch from unread data, so callers
        make sure that there is one.
        """
        return self._launch_at(captured, checkpoint, self.jvm.org.apache.spark.sql.streaming.Trigger.Once())

    def launch_available_at(self, captured: CapturedWriter, checkpoint: str) -> StreamingQuery:
        """Start the captured query on a checkpoint folder for what its sources have now, in batches of its own size."""
        return self._launch_at(captured, checkpoint, self.jvm.org.apache.spark.sql.streaming.Trigger.AvailableNow())

    def launch(self, captured: CapturedWriter) -> StreamingQuery:
        """Start the captured query as the application would have started it."""
        return self._launched(captured, self.java_writer(captured))

    def _launched(self, captured: CapturedWriter, jwriter: Any) -> StreamingQuery:
        with self.active(captured):
            return captured.python_query(captured.launch(jwriter))

    def active(self, captured: CapturedWriter) -> AbstractContextManager[None]:
        """Make a writer's session the calling thread's active one."""
        return active(self.context, self.first_class(_SESSIONS), captured.dataset.sparkSession())

    def _with_own_sink(self, captured: CapturedWriter, jwriter: Any, checkpoint: str) -> StreamingQuery:
        def change(query_id: str) -> bool:
            live = self.live_of(query_id)
            if self.qualified(live.checkpoint_root) != self.qualified(checkpoint):
                return False
            if captured.file_sink is not None:
                live.java_sink = captured.file_sink
            else:
                give_own_options(self, captured, live)
            return True

        with at_start(self, captured.dataset.sparkSession(), change) as listener:
            query = self._launched(captured, jwriter)
        if query.id not in listener.changed:
            query.stop()
            raise UnsupportedSparkError("the query cannot be given its sink as the application has it")
        return query

    def java_writer(self, captured: CapturedWriter) -> Any:
        """Return a JVM writer that is as the captured one was."""
        constructor = captured.dataset.getClass().getMethod("writeStream", self.array(self.jvm.java.lang.Class))
        jwriter = constructor.invoke(captured.dataset, self.array(self.jvm.java.lang.Object))
        for field in jwriter.getClass().getDeclaredFields():
            if str(field.getName()) in captured.fields:
                field.setAccessible(True)
                field.set(jwriter, captured.fields[str(field.getName())])
        return jwriter

    def _launch_at(self, captured: CapturedWriter, checkpoint: str, trigger: Any) -> StreamingQuery:
        self._forget_refused(checkpoint)
        jwriter = self.java_writer(captured).option("checkpointLocation", checkpoint).trigger(trigger)
        own = captured.file_sink is not None or is_a_librarys(self, captured)
        query = self._with_own_sink(captured, jwriter, checkpoint) if own else self._launched(captured, jwriter)
        live = self.live(query)
        while live.thread_alive and not live.initialized:  # its sources are made by its own thread
            time.sleep(_POLL_SECONDS)
        return query

    def array(self, of: Any, length: int = 0) -> Any:
        """Return a Java array, empty by default, for calls by reflection."""
        gateway = self.context._gateway
        assert gateway is not None
        return gateway.new_array(of, length)

    def list_of(self, array: Any) -> Any:
        """Return a Java array as a list; py4j finds no method that takes an array of another class than it names."""
        arrays, objects = self.jvm.java.lang.Class.forName("java.util.Arrays"), self.jvm.java.lang.Class.forName("[Ljava.lang.Object;")
        classes = self.array(self.jvm.java.lang.Class, 1)
        classes[0] = objects
        return arrays.getMethod("asList", classes).invoke(None, self.object_array(array))

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
            base = self.session_conf(_DEFAULT_FOLDER)
            if not base or not captured.query_name:
                return None
            location = self.jvm.org.apache.hadoop.fs.Path(base, captured.query_name).toString()
        return self.qualified(location)

    def qualified(self, location: str) -> str:
        """Return a path with the scheme and authority that Hadoop gives it."""
        path = self.jvm.org.apache.hadoop.fs.Path(location)
        return str(path.getFileSystem(self.hadoop_conf()).makeQualified(path).toString())

    def is_encoded(self, location: str) -> bool:
        """Return whether a path has characters that are written otherwise in its URI, such as a space or a percent sign."""
        path = self.jvm.org.apache.hadoop.fs.Path(location)
        return str(path.toUri().toString()) != str(path.toString())

    # -- plans ---------------------------------------------------------------------------------------------------------------------

    def analyzed_text(self, captured: CapturedWriter) -> str:
        """Return the analyzed logical plan, its functions and schema as text that is equal for equal plans of two runs."""
        plan = PlanText(self).of(captured.dataset.queryExecution().analyzed())
        return f"{captured.confs}\n{plan}\n{without_seeds(captured.dataset.schema().json())}"

    def sink_text(self, captured: CapturedWriter) -> str:
        """Return kind, destination and Python code of a writer's sink as text that is equal for equal sinks of two runs."""
        return sink_text(self, captured)

    def stateful_operators(self, captured: CapturedWriter) -> list[LogicalOperator]:
        """Return the operators of the plan that keep state between batches, top down."""
        return self._operators(captured, self.session_state())

    def kept_limits(self, captured: CapturedWriter) -> int:
        """Return how many limits with state the plan has in a session that keeps them (`empty_limits.keep_empty_limits`)."""
        session = self.cloned_session()
        keep_empty_limits(session)
        with active(self.context, self.first_class(_SESSIONS), session):  # by whose confs the optimizer goes
            return sum(operator.name in LIMITS for operator in self._operators(captured, session.sessionState()))

    def _operators(self, captured: CapturedWriter, state: Any) -> list[LogicalOperator]:
        analyzed = captured.dataset.queryExecution().analyzed()
        return list(operators_of(self, state.optimizer().execute(analyzed), captured.output_mode))

    def watermarks(self, captured: CapturedWriter) -> tuple[str, ...]:
        """Return what `watermarks_of` says of the plan, equal for equal plans of two runs."""
        return tuple(f"{captured.confs} {text}" for text in watermarks_of(self, captured.dataset.queryExecution().analyzed()))

    def source_names(self, captured: CapturedWriter) -> list[str]:
        """Return the names that the application has given the query's sources."""
        return names_given(captured.dataset.queryExecution().analyzed())

    def empty_frame(self, schema: Any) -> Any:
        """Return a JVM Dataset without rows, of a schema of the JVM."""
        return self._jsession.createDataFrame(self.jvm.java.util.ArrayList(), schema)

    # -- running queries -----------------------------------------------------------------------------------------------------------

    def active_queries(self) -> dict[str, str]:
        """Return names, or else ids, by run id of the queries that run in any session of the application."""
        return {str(execution.runId()): str(execution.name() or execution.id()) for execution in self._executions()}

    def live_of(self, query_id: str) -> LiveQuery:
        """Return the execution of the query of an id that starts or runs in any session of the application."""
        return LiveQuery(self, self._running().get(self.jvm.java.util.UUID.fromString(query_id)))

    def _executions(self) -> list[Any]:
        """Return those that have begun: one that Spark has refused to start beside another one (CONCURRENT_QUERY) stays in its list."""
        return [found for found in self._listed() if _has_begun(found)]

    def _forget_refused(self, checkpoint: str) -> None:
        """Have Spark forget those that it has refused on a checkpoint folder, or on the one around it: it would refuse all after them."""
        for found in self._listed():
            if not _has_begun(found) and f"{self.qualified(checkpoint)}/".startswith(f"{self.qualified(found.resolvedCheckpointRoot())}/"):
                self._running().remove(found.id(), found)

    def _listed(self) -> list[Any]:
        return elements(self.jvm.java.util.Collections.list(self._running().elements()))

    def _running(self) -> Any:
        return self._jsession.sharedState().activeStreamingQueries()

    def started_like(self, captured: CapturedWriter, location: str | None) -> list[StreamingQuery]:
        """Return handles on the queries that run as if a writer had started them, whether or not its start has returned.

        One that was interrupted goes on without a handle, and StreamingQueryManager.startQuery then takes it out of its session's list.

        Parameters
        ----------
        captured, location
            The writer, and its checkpoint folder; None for a temporary one.
        """
        plan = captured.dataset.queryExecution().analyzed()
        return [
            captured.python_query(execution)
            for execution in self._executions()
            if str(execution.name() or "") == captured.query_name
            and execution.analyzedPlan().fastEquals(plan)
            and self._is_at(execution, location)
        ]

    def _is_at(self, execution: Any, location: str | None) -> bool:
        if location is None:
            return LiveQuery(self, execution).chosen_checkpoint(self._default_folder())
        return self.qualified(execution.resolvedCheckpointRoot()) == location

    def _default_folder(self) -> str:
        base = self.session_conf(_DEFAULT_FOLDER)
        return self.qualified(base) if base else ""

    def same_plan(self, one: CapturedWriter, other: CapturedWriter) -> bool:
        """Return whether two writers have one plan: those of one DataFrame do."""
        return bool(one.dataset.queryExecution().analyzed().fastEquals(other.dataset.queryExecution().analyzed()))

    def is_active(self, query: StreamingQuery) -> bool:
        """Return whether a query runs, whatever the application is told."""
        return bool(query._jsq.isActive())

    def is_in_jvm(self, query: StreamingQuery) -> bool:
        """Return whether there is an execution behind a query: neither a mock of an application's tests nor one that has ended."""
        return isinstance(getattr(query, "_jsq", None), JavaObject)

    def live(self, query: StreamingQuery) -> LiveQuery:
        """Return the handle on a running query's execution."""
        jquery = query._jsq
        execution = jquery.streamingQuery() if hasattr(jquery, "streamingQuery") and "Wrapper" in jquery.getClass().getName() else jquery
        return LiveQuery(self, execution)

    def answers_of(self, hosts_and_ids: Sequence[tuple[str, str]]) -> set[str]:
        """Return the ids that executors give of themselves, each from its own process and by a small job that prefers to run there.

        Barrier mode would be simpler, but Spark refuses it under dynamic allocation; a preferred location of the form
        ``executor_HOST_ID`` names one executor process (TaskLocation in Spark's scheduler). The job is one of the JVM: a Python worker
        would have to be started on each executor first, which takes seconds.
        """
        rows = [
            self.jvm.scala.Tuple2(executor_id, self.scala_seq([f"executor_{host}_{executor_id}"])) for host, executor_id in hosts_and_ids
        ]
        tag = self.jvm.scala.reflect.ClassTag.apply(self.jvm.java.lang.Class.forName("java.lang.String"))
        pinned = self.scala_context.makeRDD(self.scala_seq(rows), tag)
        asked = self.scala_seq([f"reflect('java.lang.System', 'getenv', '{name}')" for name in (_EXECUTOR_ID, _LOG_URL)])
        frame = self._jsession.createDataset(pinned, self.jvm.org.apache.spark.sql.Encoders.STRING()).selectExpr(asked)
        return {_id_of(row.getString(0), row.getString(1)) for row in elements(frame.collectAsList())} - {""}

    def scala_seq(self, items: Iterable[Any]) -> Any:
        """Return a Scala Seq."""
        java_list = self.jvm.java.util.ArrayList()
        for item in items:
            java_list.add(item)
        return self.jvm.org.apache.spark.api.python.PythonUtils.toSeq(java_list)  # Spark's own, for Scala 2.12 and 2.13

    def executors(self) -> list[tuple[str, str]]:
        """Return id and host of every active executor; the driver is not one."""
        listed = self.scala_context.statusStore().executorList(True)
        found = [listed.apply(index) for index in range(listed.size())]
        return [(str(item.id()), str(item.hostPort()).rsplit(":", 1)[0]) for item in found if str(item.id()) != "driver"]


def _has_begun(execution: Any) -> bool:
    return str(execution.queryExecutionThread().getState().toString()) != "NEW"


def elements(java_list: Any) -> list[Any]:
    """Return what is in a Java list: py4j's iterator ends by an exception of the JVM, which is translated by 65 questions."""
    return [java_list.get(index) for index in range(java_list.size())]


def _id_of(own: str | None, log_url: str | None) -> str:
    """Return an executor's id; "" where neither variable is set. What is not set is None or, by ``String.valueOf``, the text "null"."""
    if own in (None, "null"):
        return "".join(parse_qs(urlsplit(log_url or "").query).get("executorId", []))  # a standalone cluster tells it nowhere else
    return own or ""
