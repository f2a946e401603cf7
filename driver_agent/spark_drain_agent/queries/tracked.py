"""A query that the application started."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager
from spark_drain_store import DrainOptions

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, read_journal
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.checkpoint.state_files import versions_of
from spark_drain_agent.clock import wall
from spark_drain_agent.planning.limits import NO_LIMITS, Limits
from spark_drain_agent.planning.plan import BOUNDED_TRIGGERS, REAL_TIME_TRIGGER, QueryFacts, fingerprint
from spark_drain_agent.queries.ended_query import EndedQuery
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF, FLUSH_VALUES, RunningFlushFacts
from spark_drain_agent.queries.standing import Standing
from spark_drain_agent.spark_internals.empty_limits import keep_empty_limits
from spark_drain_agent.spark_internals.errors import JavaError, UnsupportedSparkError
from spark_drain_agent.spark_internals.live_query import LiveQuery, OperatorState, operator_states
from spark_drain_agent.spark_internals.operators import LIMITS, LogicalOperator
from spark_drain_agent.spark_internals.places import Place
from spark_drain_agent.spark_internals.relations import read_from, written_to
from spark_drain_agent.spark_internals.relaunch import RETAINED
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.sinks import table_folder, writes_files
from spark_drain_agent.spark_internals.state_stores import JOIN_FORMAT, STATE_FORMAT, STATE_PROVIDER
from spark_drain_agent.spark_internals.unknown import or_unknown
from spark_drain_agent.spark_internals.writer import SAME_VERSION_CONF, VERSION_CONF, CapturedWriter
from spark_drain_agent.user_code.batch_marks import marks_of_start

__all__ = ["TrackedQuery", "owners_word"]

_BETWEEN = "\x00\x00"


def owners_word(version: str) -> str:
    """Return the end of a sentence that begins with "if this is that version, and": how its owner says so."""
    return (
        "only an upgrade of the agent, another command line or environment, or something new in the plan of each start tells them apart, "
        f"{SAME_VERSION_CONF}={version} says so"
    )


@dataclass(eq=False)
class TrackedQuery:
    """A query whose start the agent saw.

    Parameters
    ----------
    internals
        Access to Spark, through the session that started it.
    captured
        Its writer.
    location
        URI of its checkpoint folder, None for a temporary one.
    query
        The running query, or None when a drain kept it from starting.
    """

    internals: SparkInternals
    captured: CapturedWriter
    location: str | None
    query: StreamingQuery | None = None
    files: CheckpointFiles | None = field(default=None, init=False)
    refused: bool = field(default=False, init=False)
    """Whether Spark has answered its start with an exception, and nothing of it runs."""
    manager: int = field(default=0, init=False)
    """What tells the session of a query of which something is left from any other."""
    _acknowledged: threading.Event = field(default_factory=threading.Event, init=False)
    """Shared with what is left of the query, which may be made at the same time."""
    _end: Standing | None = field(default=None, init=False)
    _session: Any = field(default=None, init=False)
    _temporary: bool = field(default=False, init=False)
    _deleted_at_end: bool = field(default=False, init=False)
    _limits: Limits | None = field(default=None, init=False)
    _error: str = field(default="", init=False)

    @property
    def label(self) -> str:
        """How messages call the query."""
        if self.captured.query_name:
            return f"query {self.captured.query_name!r}"
        chosen = self.location is not None and not self._temporary
        return f"query with checkpoint {self.location}" if chosen else f"unnamed query to {self.captured.source}"

    @property
    def key(self) -> str:
        """What tells the query from every other one of the application, from its start to its end."""
        return self.label if self.location is None or self._temporary else self.location

    @property
    def query_id(self) -> str:
        """Spark's id of the query, "" where a drain kept it from starting."""
        return self._ids[0] if self.query is not None else ""

    @property
    def run_id(self) -> str:
        """Spark's id of this run of the query, "" where a drain kept it from starting."""
        return self._ids[1] if self.query is not None else ""

    @cached_property
    def _ids(self) -> tuple[str, str]:
        assert self.query is not None
        return str(self.query.id), str(self.query.runId)

    def is_like(self, other: TrackedQuery) -> bool:
        """Return whether another query has the same name, checkpoint and plan, so that what runs may be either."""
        if other is self or (self.captured.query_name, self.location) != (other.captured.query_name, other.location):
            return False
        return self.internals.same_plan(self.captured, other.captured)

    @property
    def ended(self) -> bool:
        """Whether the query ran and has ended."""
        return self._end is not None or (self.query is not None and not self.internals.is_active(self.query))

    @property
    def forgotten(self) -> bool:
        """Whether the application asked, after the query's end, to be told no more of such."""
        return self._acknowledged.is_set()

    def forget(self) -> None:
        """Take note that it did."""
        self._acknowledged.set()

    def belongs_to(self, streams: StreamingQueryManager) -> bool:
        """Return whether the query was started in the session of this manager."""
        return self.manager == self.internals.manager_id(streams) if self.is_left else self.internals.manages(streams)

    def left(self, internals: SparkInternals, *, with_digest: bool) -> TrackedQuery:
        """Return what is left to say of a query that has ended, for which neither Spark nor the application keep anything.

        Parameters
        ----------
        internals
            Access to Spark, through a session that lasts as long as the application.
        with_digest
            Whether its fingerprint is worth its price.
        """
        if self.is_left:
            return self
        assert self.query is not None
        with as_agent():
            failure = self.query.exception()
        left = TrackedQuery(internals, self.captured.named(), self.location, EndedQuery(self.query_id, self.run_id, failure))
        left._acknowledged, left._end, left._temporary = self._acknowledged, self.standing(), self._temporary
        left.manager, left._error = self.internals.manager_id(self.internals.session.streams), self.error
        left.fingerprint = self.fingerprint if with_digest else ""
        return left

    @property
    def error(self) -> str:
        """The exception that ended the query and its causes, or ""."""
        return self._error if self.is_left else self.live.error

    @property
    def is_left(self) -> bool:
        """Whether this is what `left` returned."""
        return isinstance(self.query, EndedQuery)

    @property
    def live(self) -> LiveQuery:
        """The running query's execution."""
        assert self.query is not None
        return self.internals.live(self.query)

    def keep_session(self) -> None:
        """Keep the session for later starts as it is now: the query's own, where it has one, else the application's."""
        self._session = self.internals.cloned_session(self.live.session if self.query is not None else None)

    def as_started(self, prepare: Callable[[Any], None] | None = None) -> CapturedWriter:
        """Return the writer in the session that was kept: the application may have changed confs, schema or views since.

        That session of the JVM is prepared for a flush.
        """
        if self._session is None:
            self.keep_session()
        self.keep_limits(self._session)
        if prepare is not None:
            prepare(self._session)
        # The end of a bounded query tells a listener that all was read, which is not for the drain to say.
        captured = self.internals.in_session(self.captured, self._session, listeners=not self.bounded)
        return captured if self.query is None or self.is_left else replace(captured, file_sink=self.live.file_sink)

    def has_executed(self, committed: int) -> bool:
        """Return whether this run has executed one of the batches up to that one, for which Spark has compared the state with its plan."""
        planned = self.live.planned_batch_id if self.query is not None and not self.is_left else None
        return planned is not None and planned <= committed

    @property
    def operators_found(self) -> int:
        """How many operators the newest batch has left state of, where that is none of this run's or of a drain's."""
        if self.location is None or (self.query is not None and self.live.planned_a_batch):
            return 0
        journal, newest = self._journal(), self.checkpoint().newest_commit
        if newest is None or (journal is not None and not journal.over):
            return 0
        if journal is not None and journal.step is JournalStep.DONE:
            left = journal.first_batch_id - 1 if journal.left_empty else journal.flush_batch_id
            if newest <= left:
                return 0
        return sum(version > newest for version in self._newest_versions("state").values())

    def _newest_versions(self, folder: str) -> dict[str, int]:
        """Return the newest version of state there, by the number of its operator."""
        found: dict[str, int] = {}
        for name, version in versions_of(self.checkpoint_files().below(folder)).items():
            operator = name.removeprefix(f"{folder}/").partition("/")[0]
            found[operator] = max(version, found.get(operator, 0))
        return found

    def keep_limits(self, session: Any) -> None:
        """Let limits that are in the plans of batches stay in that of one without input, in a JVM session that is not the application's."""
        if (self._limits or self.limits()).keeps:
            keep_empty_limits(session)

    def limits(self) -> Limits:
        """Return how many limits are in which plan, as of now; what was found last is what the flush goes by."""
        found = [operator for operator in self.operators if operator.name in LIMITS]
        if not any(operator.needs_input for operator in found):
            self._limits = NO_LIMITS
            return self._limits
        in_state, in_newest = self._limits_in_state(len(self.operators) - len(found))
        in_batches = self.live.planned_limits if self.query is not None else None
        self._limits = Limits(
            in_batches=in_newest if in_batches is None else in_batches,
            in_state=in_state,
            without_input=sum(not operator.needs_input for operator in found),
            kept=self.internals.kept_limits(self.captured),
        )
        return self._limits

    def _limits_in_state(self, others: int) -> tuple[int | None, int | None]:
        """Return how many operators have state beside those others, and how many have that of the newest batch."""
        if self.location is None:
            return None, None
        journal, before, newest = self._journal(), 0, None
        if journal is not None:
            before = journal.batch_id if not journal.over else journal.first_batch_id if journal.left_empty else 0
        if journal is None or journal.over:
            newest = self.checkpoint().newest_commit
        for folder in ("state", *([f"{journal.work}/state"] if journal is not None else [])):
            if found := [version for version in self._newest_versions(folder).values() if version > before]:
                last = found if newest is None else [version for version in found if version > newest] or found
                return len(found) - others, len(last) - others
        return None, None

    def local_properties(self) -> dict[str, str | None]:
        """Return what a query inherits from the thread that starts it, and what marks its batches."""
        return {**dict(self.captured.local_properties), **marks_of_start(self.generation())}

    def keep_temporary_checkpoint(self) -> None:
        """Let the checkpoint that Spark chose outlive the query, so that the flush finds it."""
        if self.location is None:
            self._deleted_at_end = self.live.delete_checkpoint_at_end(False)
            self.location = self.live.checkpoint_root
            self._temporary = True

    def drop_temporary_checkpoint(self) -> None:
        """Undo `keep_temporary_checkpoint`."""
        if self._temporary:
            self.live.delete_checkpoint_at_end(self._deleted_at_end)
            self.location, self.files, self._temporary = None, None, False

    def checkpoint_files(self) -> CheckpointFiles:
        """Return the files of the checkpoint folder."""
        assert self.location is not None
        if self.files is None:
            self.files = CheckpointFiles(self.internals, self.location)
        return self.files

    def checkpoint(self) -> Checkpoint:
        """Return the logs of the checkpoint folder."""
        return Checkpoint(self.checkpoint_files())

    def noted_id(self) -> str:
        """Return the id that Spark has noted in the checkpoint folder for the queries that start there; "" where there is none."""
        try:
            text = self.checkpoint().metadata if self.location is not None else None
            return str(json.loads(text)["id"]) if text else ""
        except (*JavaError, ValueError, KeyError, TypeError):
            return ""  # the start will say what is wrong

    def running_checkpoint(self) -> Checkpoint:
        """Return the logs of the running query's checkpoint folder, also of one that Spark chose."""
        return self.checkpoint() if self.location is not None else Checkpoint(CheckpointFiles(self.internals, self.live.checkpoint_root))

    def _journal(self) -> Journal | None:
        return read_journal(self.checkpoint_files()) if self.location is not None else None

    @property
    def is_drained(self) -> bool:
        """Whether a drain of the checkpoint has come to its end, or was taken back, and no other one is in the middle of it."""
        journal = self._journal()
        return journal is not None and journal.over

    def generation(self) -> int:
        """Return how often the checkpoint has been drained; 0 for a temporary one."""
        journal = self._journal()
        return journal.drains if journal is not None else 0

    def facts(self) -> QueryFacts:
        """Return what planning needs to know."""
        sink = self.captured.source
        if self.query is not None and self.live.sink.kind == "FileStreamSink":
            sink = "FileStreamSink"
        operators = self.operators
        transforms = any(operator.name.startswith("TransformWithState") for operator in operators)
        return QueryFacts(
            label=self.label,
            sink=sink,
            sink_class=self.live.sink.full_name if self.query is not None else "",
            output_mode=self.captured.output_mode,
            trigger=self.captured.trigger,
            operators=operators,
            checkpoint_location=self.location,
            async_progress=self._tracks_progress_asynchronously,
            state_expires=transforms and self.location is not None and self.checkpoint().state_expires,
            spark_version=self.internals.spark_version,
            state_format=self.internals.session_conf(STATE_FORMAT, "1"),
            join_format=self.internals.session_conf(JOIN_FORMAT, "2"),
            limits=self.limits(),
            earlier_sink_remembers=self._earlier_sink_remembers(),
            state_provider=self.internals.session_conf(STATE_PROVIDER, "HDFSBackedStateStoreProvider"),
        )

    def _earlier_sink_remembers(self) -> bool:
        journal = self._journal()
        return journal is not None and journal.ids_are_remembered

    @cached_property
    def operators(self) -> list[LogicalOperator]:
        """The operators of the plan that keep state, as Spark's optimizer leaves it, top down."""
        return self.internals.stateful_operators(self.captured)

    @cached_property
    def keeps_state(self) -> bool:
        """Whether the plan has operators that keep state, as far as is known: the application's next start must not fail for it."""
        try:
            return bool(self.operators)
        except (*JavaError, UnsupportedSparkError):
            return True

    @property
    def _tracks_progress_asynchronously(self) -> bool:
        """Whether an option says so, or Spark chose it: 4.3 does in real-time mode."""
        if self.query is not None:
            return self.live.kind.startswith("AsyncProgressTracking")
        return (self.captured.option("asyncProgressTrackingEnabled") or "").lower() == "true"

    @property
    def real_time(self) -> bool:
        """Whether the query runs in real-time mode."""
        return self.captured.trigger == REAL_TIME_TRIGGER

    def sink_folder(self) -> str:
        """Return the URI of the folder that a file sink writes to; "" for other sinks, and where the query does not run."""
        if self.query is None or self.live.sink.kind != "FileStreamSink":
            return ""
        return self.internals.qualified(self.live.sink.location)

    def next_sink_folder(self) -> str | None:
        """Return what `sink_folder` will be once the query runs; None for a table that its start makes where the catalog says."""
        path = self.captured.path or self.captured.option("path")
        if self.captured.table is not None:
            return table_folder(self.internals, self.captured.table, self.captured.source, path)
        return self.internals.qualified(path) if path and writes_files(self.internals, self.captured.source) else ""

    def places(self) -> tuple[list[Place], list[Place]]:
        """Return where the query writes to and where it reads from."""
        return written_to(self.internals, self.captured, self.live.sink), read_from(self.internals, self.captured)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of plan, Python code, sink and output mode, or of the owner's word, equal for the same version of the application."""
        captured = self.captured
        declared = captured.version
        if declared:
            return fingerprint(f"{captured.output_mode} {captured.source} {VERSION_CONF}={declared}", self.internals.spark_version)
        text = or_unknown(
            f"the plan of {self.label}",
            lambda: f"{captured.output_mode} {self.internals.sink_text(captured)} {self.internals.analyzed_text(captured)}",
        )
        return fingerprint(text, self.internals.spark_version)

    def is_version_of(self, drain_id: str, fingerprint: str) -> bool:
        """Return whether this is the version that a drain was begun with, by its digest or by the owner's word."""
        return fingerprint == self.fingerprint or self.captured.same_version_as == drain_id

    def watermarks(self) -> tuple[str, ...]:
        """Return a digest of each watermark of the plan: its column, how that is made, its delay, and the owner's word for the version."""
        made = or_unknown(f"event time of {self.label}", lambda: _BETWEEN.join(self.internals.watermarks(self.captured)))
        return tuple(fingerprint(f"{self.captured.version}{text}", self.internals.spark_version) for text in made.split(_BETWEEN) if text)

    @property
    def gone_on(self) -> bool:
        """Whether another run has gone on with the checkpoint since this one has come to its end, as far as its log shows."""
        newest = self.checkpoint().newest_offsets if self.location is not None else None
        if newest is None:
            return False
        journal = read_journal(self.checkpoint_files())
        if journal is not None and not journal.over:
            return False  # a drain is in the middle of it
        known = self.live.last_batch_id
        if known < -1:
            return False  # it was ended before it had looked there
        if journal is not None and journal.application == self.internals.application_id:
            known = max(known, journal.first_batch_id - 1)
        return newest > known

    @property
    def processing_time(self) -> bool:
        """Whether an operator has timers that follow the clock."""
        return any(operator.processing_time for operator in self.operators)

    def running_flush_facts(self, options: DrainOptions, policy: str) -> RunningFlushFacts:
        """Return what decides whether the running query can flush itself."""
        return RunningFlushFacts(
            setting=self.internals.session_conf(FLUSH_CONF, FLUSH_VALUES[0]),
            to_own_sink=options.incomplete_windows == "Emit",
            exports_state=options.state_export_path is not None,
            interval_ms=self.captured.interval_ms,
            now_ms=int(wall() * 1000),
            no_data_batches=self.internals.session_conf("spark.sql.streaming.noDataMicroBatches.enabled", "true") == "true",
            processing_time=self.processing_time,
            planned_a_batch=self.live.planned_a_batch,
            retained=int(self.internals.session_conf(RETAINED, "100")),
            state_unsure=policy == "Continue" and self.checkpoint_files().spark_hides_failures,
        )

    def operator_states(self) -> tuple[OperatorState, ...]:
        """Return the state per operator after the last batch, empty when unknown."""
        return operator_states(self.query) if self.query is not None else ()

    def state_rows(self) -> tuple[int, ...]:
        """Return the state rows per operator after the last batch, empty when unknown."""
        return tuple(state.rows for state in self.operator_states())

    @property
    def bounded(self) -> bool:
        """Whether the query ends by itself, when it has read what there is."""
        return self.captured.trigger in BOUNDED_TRIGGERS

    def standing(self) -> Standing:
        """Return how the query stands now."""
        if self.query is None:
            return Standing.HELD
        if self._end is not None:
            return self._end
        if self.live.thread_alive:
            return Standing.RUNS
        end = self._ended_as()
        if self.ended:  # for good, unlike one whose thread has not begun; there may be thousands of ended ones
            self._end = end
        return end

    def _ended_as(self) -> Standing:
        if self.error:
            return Standing.FAILED
        return Standing.FINISHED if self.bounded else Standing.STOPPED
