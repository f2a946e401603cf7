"""The drain of one query: plan, freeze, finish, and its part of the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from spark_drain_store import DrainOptions, DrainState, QueryReport

from spark_drain_agent import reasons
from spark_drain_agent.batch_marks import GENERATION_PROPERTY, marked
from spark_drain_agent.checkpoint import Checkpoint
from spark_drain_agent.claim import Claim, claim
from spark_drain_agent.journal import Journal, JournalStep, read_journal
from spark_drain_agent.outputs import query_folder
from spark_drain_agent.plan import PlanRejectedError, QueryPlan, plan_query
from spark_drain_agent.queries import TrackedQuery
from spark_drain_agent.query_report import describe_drained, describe_untouched
from spark_drain_agent.spark_internals import LiveQuery
from spark_drain_agent.spark_internals.sinks import unwritable
from spark_drain_agent.spark_internals.sources import mute_sources
from spark_drain_agent.steps.catch_up import CatchUp, MuteSourceError
from spark_drain_agent.steps.complete import complete, prepare
from spark_drain_agent.steps.export import export_state
from spark_drain_agent.steps.fence import is_fence, never_fenced
from spark_drain_agent.steps.flush import FlushError, settle
from spark_drain_agent.steps.flush_running import flush_running, running_flush_obstacle
from spark_drain_agent.steps.freeze import FrozenQuery, QueryEndedError, freeze, terminate, wait_until_settled
from spark_drain_agent.steps.seed import clear_late_state
from spark_drain_agent.trace import LOG, reached
from spark_drain_agent.versioned import application

__all__ = ["QueryDrain"]


class QueryDrain:
    """One query in one drain.

    Parameters
    ----------
    tracked
        The query, running or kept from starting.
    options
        What was asked for.
    uuid
        The drain.
    """

    def __init__(self, tracked: TrackedQuery, options: DrainOptions, uuid: str) -> None:
        self._tracked = tracked
        self._options = options
        self._uuid = uuid
        self._plan: QueryPlan | None = None
        self._frozen: FrozenQuery | None = None
        self._claim: Claim | None = None
        self._sources: tuple[str, ...] = ()
        self._rows_before: tuple[int, ...] = ()
        self._followed = False
        self.query_id = tracked.query.id if tracked.query is not None else ""
        self.report = QueryReport(
            id=self.query_id, name=tracked.captured.query_name, checkpoint_location=tracked.location or "", sink=tracked.captured.source
        )

    @property
    def key(self) -> str:
        """What tells the query from every other one of the application."""
        return self._tracked.key

    @property
    def fed(self) -> bool:
        """Whether the query is drained after others, whose last records it reads first."""
        return bool(self.report.fed_by)

    def feed(self, writers: tuple[str, ...], warnings: tuple[str, ...] = ()) -> None:
        """Take note of the queries, by `key`, that are drained before this one because it reads what they write."""
        self.report = replace(self.report, fed_by=writers, warnings=(*self.report.warnings, *warnings))

    @property
    def label(self) -> str:
        """How messages call the query."""
        return self._tracked.label

    def plan(self) -> QueryPlan:
        """Decide what will be done, without touching anything; raises `PlanRejectedError`."""
        plan = plan_query(self._options, self._tracked.facts())
        if self._tracked.query is not None and self._tracked.live.kind != "MicroBatchExecution":
            raise PlanRejectedError(reasons.UNSUPPORTED_QUERY, f"{self.label} runs as {self._tracked.live.kind}, which cannot be drained")
        if not plan.operators and self._options.mode != "Stop" and any(self._tracked.state_rows()):
            raise PlanRejectedError(
                reasons.UNSUPPORTED_QUERY,
                f"{self.label} keeps state in an operator that this agent does not know: use mode 'Stop' to keep it",
            )
        self._check_outputs(plan)
        if self._options.mode == "CatchUp" and not plan.bounded and self._tracked.query is not None:
            self._refuse_mute(", ".join(mute_sources(self._tracked.live)))
        self._plan = plan
        self.report = replace(
            self.report, checkpoint_policy=plan.checkpoint_policy, operators=plan.operators, warnings=plan.warnings, state="Running"
        )
        return plan

    def _check_outputs(self, plan: QueryPlan) -> None:
        options, tracked = self._options, self._tracked
        if options.incomplete_windows == "SideOutput" and plan.flushes:
            obstacle = unwritable(tracked.internals, tracked.captured, options.side_output_format)
            if obstacle:
                raise PlanRejectedError(
                    reasons.UNSUPPORTED_OPTION,
                    f"incompleteWindows.sideOutput.format {options.side_output_format!r} does not do for {self.label}: {obstacle}",
                )
        if options.state_export_path is not None and int(tracked.internals.spark_version.split(".")[0]) < 4:
            raise PlanRejectedError(
                reasons.UNSUPPORTED_OPTION,
                f"stateExport.path {options.state_export_path!r} needs the state reader of Spark 4.0 or newer, and this is Spark "
                f"{tracked.internals.spark_version}: leave stateExport out",
            )

    def _refuse_mute(self, sources: str) -> None:
        if sources:
            raise PlanRejectedError(
                reasons.UNSUPPORTED_QUERY,
                f"{self.label} reads {sources}, which cannot say how far its data goes: use mode 'Drain', which reads no further",
            )

    def catch_up(self, keep_waiting: Callable[[], None]) -> CatchUp | None:
        """Note how far the sources' data goes now; None for a bounded query, which knows its end."""
        assert self._plan is not None
        if self._plan.bounded:
            return None
        tracked = self._tracked
        try:
            return CatchUp(tracked.internals, tracked.live, tracked.checkpoint(), keep_waiting)
        except MuteSourceError as error:  # a query that had just been started had no sources yet when it was planned
            self._refuse_mute(str(error))
            raise

    def freeze(self, keep_waiting: Callable[[], None]) -> None:
        """Take the sources away; a bounded query is left to run to its end."""
        assert self._plan is not None
        if not self._plan.bounded:
            self._frozen = freeze(self._tracked.live, keep_waiting)
            self._sources = tuple(self._tracked.live.sources)
            self._tracked.keep_temporary_checkpoint()
        self.report = replace(self.report, state=DrainState.STOPPING, checkpoint_location=self._tracked.location or "")

    def under_way(self) -> str:
        """Return what still has to end of what a frozen query began, or ""."""
        if self._frozen is None:
            return f"the rest of {self.label}, which is bounded" if self._tracked.live.thread_alive else ""
        checkpoint = self._tracked.checkpoint()
        return "" if checkpoint.settled else f"batch {checkpoint.newest_offsets} of {self.label}"

    def wait_until_settled(self, keep_waiting: Callable[[], None]) -> None:
        """Wait until nothing is in flight."""
        if self._frozen is not None:
            wait_until_settled(self._frozen.live, self._tracked.checkpoint(), keep_waiting)
            return
        live = self._tracked.live
        while live.thread_alive:
            keep_waiting()
            live.join(0.2)

    def check_checkpoint(self) -> None:
        """Refuse checkpoint formats that the later steps would not understand."""
        checkpoint = self._tracked.checkpoint() if self._tracked.location else None
        if checkpoint is not None and checkpoint.newest_commit is not None:
            checkpoint.watermark_after(checkpoint.newest_commit)

    def thaw(self) -> None:
        """Undo `freeze`."""
        if self._frozen is not None:
            self._frozen.thaw()
            self._frozen = None
            self._tracked.drop_temporary_checkpoint()
        self.report = replace(self.report, state="Running", checkpoint_location=self._tracked.location or "")

    def finish(self) -> None:
        """End the query and bring its checkpoint to the end of the drain; can be called again after a failure."""
        tracked = self._tracked
        if tracked.location is None:
            self.report = replace(self.report, state=DrainState.DRAINED)
            return
        files, checkpoint = tracked.checkpoint_files(), tracked.checkpoint()
        self.report = replace(self.report, state=DrainState.FLUSHING, message="")
        if (pending := read_journal(files)) is not None and not pending.over:
            self._hold_claim()
        if self.fed and not self._followed:
            self._follow(checkpoint)
        if self._frozen is not None:
            self._rows_before = self._rows_before or tracked.state_rows()
            try:
                self._flush_running(self._frozen.live, checkpoint)
            finally:
                terminate(self._frozen.live, checkpoint)
        journal = read_journal(files)
        if journal is None or journal.uuid != self._uuid or never_fenced(files, journal):
            with marked(tracked.internals.context, {GENERATION_PROPERTY: str(tracked.generation())}):
                settle(files, lambda folder: tracked.internals.launch_once_at(tracked.captured, folder))
            journal = self._begin()
        if journal is None:
            self._export_kept(checkpoint)
            self.report = describe_untouched(self.report, self._sources, checkpoint)
        else:
            completed = complete(files, journal, application(tracked, journal), self._options.retain_archives)
            rows_after = completed.rows_after or self._rows_after_running_flush(completed.journal)
            self.report = describe_drained(self.report, files, completed.journal, rows_after)
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def _hold_claim(self) -> None:
        self._claim = self._claim or claim(self._tracked.checkpoint_files(), self._tracked.internals)

    def _flush_running(self, live: LiveQuery, checkpoint: Checkpoint) -> None:
        plan, tracked = self._plan or self.plan(), self._tracked
        if not plan.flushes or not live.thread_alive or is_fence(checkpoint.metadata):
            return
        obstacle = running_flush_obstacle(tracked.running_flush_facts(self._options))
        if obstacle:
            LOG.info("drain %s: %s is flushed on a work copy, since %s", self._uuid, self.label, obstacle)
            return
        flush_running(live, checkpoint, self._begin)

    def _rows_after_running_flush(self, journal: Journal) -> tuple[int, ...]:
        progress = self._tracked.query.lastProgress if self._tracked.query is not None else None
        return self._tracked.state_rows() if progress is not None and progress["batchId"] == journal.flush_batch_id else ()

    def _follow(self, checkpoint: Checkpoint) -> None:
        """Read up to the last record of the queries that feed this one; they are drained and write no more.

        Where no query runs any more, a new start of it reads what there is; the journal of a crash in the flush needs neither.
        """
        journal = read_journal(checkpoint.files)
        if journal is None or journal.uuid != self._uuid:
            if journal is not None:
                clear_late_state(checkpoint.files, journal)
            if not self._caught_up_running(checkpoint):
                self._read_available(checkpoint)
            reached("followed")
        self._followed = True

    def _caught_up_running(self, checkpoint: Checkpoint) -> bool:
        tracked, plan = self._tracked, self._plan or self.plan()
        if tracked.query is None or not tracked.live.thread_alive or plan.bounded or mute_sources(tracked.live):
            return False
        try:
            CatchUp(tracked.internals, tracked.live, checkpoint, _no_limit).wait()
            self.freeze(_no_limit)
            self.wait_until_settled(_no_limit)
        except QueryEndedError as error:
            LOG.warning("drain %s: %s ended while it read what feeds it, and is started again: %s", self._uuid, self.label, error)
            self._frozen = None
            return False
        return True

    def _read_available(self, checkpoint: Checkpoint) -> None:
        tracked = self._tracked
        if tracked.query is not None and tracked.live.thread_alive:
            if (self._plan or self.plan()).bounded:
                self.wait_until_settled(_no_limit)
            else:
                terminate(tracked.live, checkpoint)
        try:
            with marked(tracked.internals.context, {GENERATION_PROPERTY: str(tracked.generation())}):
                tracked.internals.launch_available_at(tracked.captured, checkpoint.files.root).awaitTermination()
        except Exception as error:
            raise FlushError(f"reading the last records of the queries that feed it failed: {error}") from error

    def _export_kept(self, checkpoint: Checkpoint) -> None:
        """Export what mode Stop keeps."""
        batch_id, root = checkpoint.newest_commit, self._options.state_export_path
        if root is None or batch_id is None or not checkpoint.files.exists(checkpoint.name("state")):
            return
        target = self._folder(root, checkpoint.metadata or "{}")
        export_state(self._tracked.internals.session, checkpoint.files.root, batch_id, target)
        self.report = replace(self.report, state_export=target)

    def _folder(self, root: str, metadata: str) -> str:
        query_id = str(json.loads(metadata).get("id", ""))
        return query_folder(self._tracked.internals.qualified(root), self._tracked.captured.query_name, query_id)

    def _begin(self) -> Journal | None:
        """Write the journal of a settled checkpoint; None where there is nothing to do to it."""
        tracked, checkpoint = self._tracked, self._tracked.checkpoint()
        plan, options = self._plan or self.plan(), self._options
        batch_id, metadata = checkpoint.newest_commit, checkpoint.metadata
        if plan.checkpoint_policy == "" or batch_id is None or batch_id < 0 or metadata is None or is_fence(metadata):
            return None
        self._hold_claim()
        return prepare(
            tracked.checkpoint_files(),
            Journal(
                uuid=self._uuid,
                step=JournalStep.PREPARED,
                checkpoint_policy=plan.checkpoint_policy,
                query_name=tracked.captured.query_name,
                sink=tracked.captured.source,
                sources=self._sources,
                batch_id=batch_id,
                watermark_ms=checkpoint.watermark_after(batch_id),
                metadata=metadata,
                fingerprint=tracked.fingerprint(),
                spark_version=tracked.internals.spark_version,
                application=tracked.internals.application_id,
                generation=tracked.generation() + 1,
                flushes=plan.flushes,
                windows=options.incomplete_windows,
                side_output=self._folder(options.side_output_path, metadata) if options.side_output_path and plan.flushes else "",
                side_output_format=options.side_output_format,
                state_export=self._folder(options.state_export_path, metadata) if options.state_export_path and plan.operators else "",
                state_rows=self._rows_before,
            ),
        )


def _no_limit() -> None:
    """Beyond the point of no return there is no giving up."""
