"""One query past the point of no return: flush it, end it, leave its checkpoint as the next start needs it, and say so."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from spark_drain_store import DrainOptions, DrainState, QueryReport

from spark_drain_agent.checkpoint.complete import complete, prepare
from spark_drain_agent.checkpoint.fence import is_fence, never_fenced, unfence_overtaken
from spark_drain_agent.checkpoint.files import CheckpointLeasedError
from spark_drain_agent.checkpoint.flush import settle
from spark_drain_agent.checkpoint.journal import Journal, JournalStep, MalformedJournalError, read_journal
from spark_drain_agent.checkpoint.lease import Lease, acquire_lease
from spark_drain_agent.checkpoint.logs import WATERMARK_POLICY, Checkpoint, CommittedBatch, UnknownCheckpointFormatError
from spark_drain_agent.checkpoint.state_export import batch_with_state, export_state
from spark_drain_agent.clock import monotonic
from spark_drain_agent.drain.follow import follow
from spark_drain_agent.drain.planned import planned
from spark_drain_agent.drain.query_report import describe_drained, describe_planned, describe_untouched
from spark_drain_agent.milestones import LOG, reached
from spark_drain_agent.planning.output_paths import query_folder
from spark_drain_agent.planning.plan import QueryPlan
from spark_drain_agent.queries.first_start import prepare_first_start
from spark_drain_agent.queries.flush_in_place import flush_running, running_flush_obstacle
from spark_drain_agent.queries.flush_launch import RecoveryNeedsPreviousVersionError, application, give_up_command
from spark_drain_agent.queries.freeze import FrozenQuery, newest_planned, terminate
from spark_drain_agent.queries.tracked import TrackedQuery, owners_word
from spark_drain_agent.spark_internals.live_query import LiveQuery, OperatorState
from spark_drain_agent.spark_internals.relaunch import leave_state_unchecked
from spark_drain_agent.user_code.batch_marks import marked

__all__ = ["CommittedQuery", "DrainUndoneError"]


class DrainUndoneError(Exception):
    """Somebody has taken the drain of this query back by hand; the message has the way out."""

    @classmethod
    def of(cls, tracked: TrackedQuery) -> DrainUndoneError:
        """Return the error of a query whose checkpoint is not as the drain has left it."""
        return cls(
            f"this drain was taken back at {tracked.location} with `recover`, `resume` or a backup, so it will not be done: remove its "
            "request (delete the PipelineDrain, or `drain cleanup --all`), and start the application again"
        )


@dataclass(frozen=True)
class _Ended:
    """How a query was ended.

    Parameters
    ----------
    flushed
        The journal where it has flushed itself.
    committed
        Its newest batch, where that is known to be committed.
    tried
        Whether it was to flush itself, so that there may be a journal in any case.
    """

    flushed: Journal | None = None
    committed: int | None = None
    tried: bool = False


class CommittedQuery:
    """One query in a drain that goes on to its end.

    Parameters
    ----------
    tracked
        The query, running or kept from starting.
    options
        What was asked for.
    drain_id
        The drain.
    report
        What was said of the query up to now.
    plan
        What was decided; None in a run that inherited the drain, which plans when it needs to.
    frozen
        The running query without its sources; None where it is bounded, reads on, or does not run.
    last
        The newest batch when it was frozen; None where nobody looked.
    """

    def __init__(
        self,
        tracked: TrackedQuery,
        options: DrainOptions,
        drain_id: str,
        report: QueryReport,
        *,
        plan: QueryPlan | None = None,
        frozen: FrozenQuery | None = None,
        last: CommittedBatch | None = None,
    ) -> None:
        self._tracked, self._options, self._drain_id, self._report = tracked, options, drain_id, report
        self.label = tracked.label
        """How messages call the query, also once its JVM is gone."""
        self._plan = plan
        self._frozen, self._last = frozen, last
        self._sources = frozen.sources if frozen is not None else ()
        self._lease: Lease | None = None
        self._rows_before: tuple[int, ...] = ()
        self._followed = False
        self._session_kept = False

    @property
    def report(self) -> QueryReport:
        """The query as it is now."""
        return self._report

    @property
    def key(self) -> str:
        """What tells the query from every other one of the application."""
        return self._tracked.key

    @property
    def query_id(self) -> str:
        """Spark's id of the query; "" where it was kept from starting."""
        return self._tracked.query.id if self._tracked.query is not None else ""

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The queries, by `key`, that are drained before this one because it reads what they write."""
        return self._report.depends_on

    @property
    def finished(self) -> bool:
        """Whether the drain has nothing left to do to the query."""
        return self._report.state == DrainState.DRAINED

    def stall(self, message: str) -> None:
        """Say that the query does not get on."""
        self._report = replace(self._report, state=DrainState.STALLED, message=message)

    def finish(self, tell: Callable[[str], None]) -> None:
        """End the query and bring its checkpoint to the end of the drain; can be called again after a failure.

        Parameters
        ----------
        tell
            Called with what is waited for while another run has the checkpoint, and with "" when it is free.
        """
        tracked = self._tracked
        if tracked.query is not None and not self._session_kept:
            tracked.keep_session()  # before a flush that fails in the middle leaves something in it
            self._session_kept = True
        if tracked.query is not None and tracked.live.thread_alive:  # one that was to read on until now
            tracked.keep_temporary_checkpoint()
            self._report = replace(self._report, checkpoint_location=tracked.location or "")
        if tracked.location is None:
            self._report = replace(self._report, state=DrainState.DRAINED)
            return
        files, checkpoint = tracked.checkpoint_files(), tracked.checkpoint()
        self._report = replace(self._report, state=DrainState.FLUSHING, message="")
        pending = read_journal(files)
        if pending is not None and pending.drain_id == self._drain_id and pending.taken_back:
            raise DrainUndoneError.of(tracked)
        self._refuse_another_version(pending if pending is not None and pending.drain_id == self._drain_id else None)
        if pending is not None and not pending.over:
            self._hold_lease(tell)
            pending = read_journal(files)  # who had the lease before may have gone on with it
        if self.depends_on and not self._followed:
            self._follow(checkpoint)
            pending = read_journal(files)
        ended = self._flush_running(checkpoint, pending, tell)
        if ended.tried and ended.flushed is None:
            pending = read_journal(files)
        journal = ended.flushed or self._begun(checkpoint, pending, ended.committed, tell)
        if journal is None:
            self._export_kept(checkpoint)
            self._report = describe_untouched(self._report, self._sources, checkpoint)
        else:
            retain = self._options.retain_archives
            last = self._last.entry if self._last is not None and self._last.batch_id == journal.batch_id else None
            completed = complete(
                files,
                journal,
                application(tracked, journal),
                retain,
                flushed=ended.flushed is not None,
                begun=journal is not pending,
                last=last,
            )
            left = completed.left or self._left_by_running_flush(completed.journal)
            self._report = describe_drained(self._report, files, completed.journal, left, last)
        self.let_go()

    def _begun(self, checkpoint: Checkpoint, journal: Journal | None, committed: int | None, tell: Callable[[str], None]) -> Journal | None:
        """Return the journal of this drain, which is begun where it was not; None where there is nothing to do to the checkpoint.

        Where the newest batch is known to be ``committed``, the logs are not looked at.
        """
        tracked, files = self._tracked, checkpoint.files
        if journal is None and is_fence(checkpoint.metadata):
            raise MalformedJournalError.missing(files.root)
        unfence_overtaken(files, journal)
        if journal is None or journal.drain_id != self._drain_id or never_fenced(files, journal):
            if committed is None:
                with marked(tracked.internals.context, tracked.local_properties()):
                    settle(files, lambda folder: tracked.internals.launch_once_at(tracked.as_started(), folder))
                committed = checkpoint.newest_commit
            return self._begin(journal, tell, committed)
        return journal

    def let_go(self) -> None:
        """Leave the checkpoint to the next start: nothing of this drain works on it any more."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    def _refuse_another_version(self, pending: Journal | None) -> None:
        """Leave a drain that another version was asked for to that version, also before its flush is logged."""
        if self._options.mode == "Stop" or (pending is not None and pending.over):
            return
        meant = self._report.fingerprint or (pending.fingerprint if pending is not None else "")
        if meant and not self._tracked.is_version_of(self._drain_id, meant):
            raise RecoveryNeedsPreviousVersionError(
                f"drain {self._drain_id} is past its point of no return, was begun with another version of the application, "
                "and is not finished: start that version once, it finishes the drain and stops where the drain's request "
                "is still there, else drain it once more. If this is the same one, and "
                f"{owners_word(self._drain_id)}. If that version is lost: {give_up_command(self._tracked)}, or, where "
                "that finds nothing to give up, remove the drain's request"
            )

    def _planned(self) -> QueryPlan:
        if self._plan is None:
            self._plan = planned(self._tracked, self._options)
            self._report = describe_planned(self._report, self._plan)
        return self._plan

    def _hold_lease(self, tell: Callable[[str], None]) -> None:
        if self._lease is None or self._lease.lost:
            self._lease = acquire_lease(self._tracked.checkpoint_files(), self._tracked.internals, tell)

    def _follow(self, checkpoint: Checkpoint) -> None:
        """Read on first; the journal of a crash in the flush says that it was done."""
        tracked = self._tracked
        journal = read_journal(checkpoint.files)
        if journal is None or journal.drain_id != self._drain_id:
            if journal is not None and (tracked.query is None or not tracked.query.isActive):
                prepare_first_start(tracked, journal, lambda: False, monotonic())
            self._frozen = follow(tracked, self._drain_id, bounded=tracked.query is not None and self._planned().bounded)
            self._last = None  # it has read on
            if self._frozen is not None:
                self._sources = self._frozen.sources
            reached("followed")
        self._followed = True

    def _flush_running(self, checkpoint: Checkpoint, before: Journal | None, tell: Callable[[str], None]) -> _Ended:
        """End the query where it runs, after it has flushed itself, if it can."""
        if self._frozen is None:
            return _Ended()
        self._rows_before = self._rows_before or self._tracked.state_rows()
        live, flushed, tried = self._frozen.live, None, False
        committed = self._last.batch_id if self._last is not None else None
        try:
            tried = self._flushes_in_place(live)
            if tried:
                self._tracked.keep_limits(live.session)
                leave_state_unchecked(live.session)
                flushed = flush_running(live, checkpoint, partial(self._begin, before, tell), committed)
                committed = flushed.flush_batch_id if flushed is not None else committed
        finally:
            newest = terminate(live, checkpoint, committed)
            self._frozen.stop_sources()
        return _Ended(flushed, newest, tried)

    def _flushes_in_place(self, live: LiveQuery) -> bool:
        plan = self._planned()
        if not plan.flushes or not live.thread_alive:
            return False
        obstacle = running_flush_obstacle(self._tracked.running_flush_facts(self._options, plan.checkpoint_policy))
        if obstacle:
            LOG.info("drain %s: %s is flushed on a work copy, since %s", self._drain_id, self.label, obstacle)
        return not obstacle

    def _left_by_running_flush(self, journal: Journal) -> tuple[OperatorState, ...]:
        if not journal.flushes:
            return ()  # an idle query tells of the next batch, with the state after its last one
        progress = self._tracked.query.lastProgress if self._tracked.query is not None else None
        return self._tracked.operator_states() if progress is not None and progress["batchId"] == journal.flush_batch_id else ()

    def _export_kept(self, checkpoint: Checkpoint) -> None:
        """Export what mode Stop keeps."""
        root = self._options.state_export_path
        if root is None or (batch_id := batch_with_state(checkpoint)) is None:
            return
        target = self._folder(root, checkpoint.metadata or "{}")
        export_state(self._tracked.internals.session, checkpoint.files.root, batch_id, target)
        self._report = replace(self._report, state_export=target)

    def _folder(self, root: str, metadata: str) -> str:
        query_id = str(json.loads(metadata).get("id", ""))
        return query_folder(self._tracked.internals.qualified(root), self._tracked.captured.query_name, query_id)

    def _late_ms(self, last: CommittedBatch) -> int:
        """Return the watermark below which the batch after the last one that read would have dropped records as late.

        Without its sources, too, a query has planned a batch when its watermark had risen.
        """
        planned = last.entry.watermark_ms
        frozen = self._frozen.watermark_ms if self._frozen is not None else None
        return planned if frozen is None else min(frozen, planned)

    def _begin(self, expected: Journal | None, tell: Callable[[str], None], batch_id: int | None) -> Journal | None:
        """Write the journal of a settled checkpoint, whose journal was the ``expected`` one; None where there is nothing to do to it."""
        tracked, checkpoint = self._tracked, self._tracked.checkpoint()
        files = checkpoint.files
        plan, options = self._planned(), self._options
        if plan.checkpoint_policy == "" or batch_id is None:
            return None
        self._hold_lease(tell)
        before = read_journal(files)
        if before != expected:  # written between the look at it and the lease
            raise CheckpointLeasedError(f"{tracked.location} was drained by another run at the same time")
        newest = newest_planned(checkpoint, batch_id)
        if newest != batch_id:  # it would be taken for the flush
            raise CheckpointLeasedError(f"another run has begun batch {newest} of {tracked.location}")
        metadata = checkpoint.metadata
        if metadata is None:
            raise UnknownCheckpointFormatError(
                f"{files.uri('metadata')} is missing, by which Spark knows the query again: write it anew, "
                + json.dumps({"id": self.query_id or "the query's id"})
            )
        if is_fence(metadata):
            if before is not None and (before.over or before.drain_id == self._drain_id):
                return None  # drained with policy Keep, or its journal says how to go on
            raise MalformedJournalError.unfinished(files.root)
        discarded_ids = before.discarded_ids if before is not None else -1
        earlier = before.undone() if before is not None and never_fenced(files, before) else before
        empty = earlier is not None and earlier.awaits_first_batch(batch_id)
        if earlier is not None and empty:
            plan = replace(plan, flushes=False, flushes_to_sink=False)  # nothing is open
            if plan.checkpoint_policy != "Keep" and plan.first_batch_id(batch_id, discarded_ids) == earlier.first_batch_id:
                return None
        last = self._last if self._last is not None and self._last.batch_id == batch_id else checkpoint.committed_batch(batch_id)
        return prepare(
            tracked.checkpoint_files(),
            Journal(
                drain_id=self._drain_id,
                step=JournalStep.PREPARED,
                checkpoint_policy=plan.checkpoint_policy,
                query_name=tracked.captured.query_name,
                sink=tracked.captured.source,
                sources=self._sources,
                batch_id=batch_id,
                watermark_ms=last.watermark_ms,
                late_ms=self._late_ms(last),
                watermarks=tracked.watermarks(),
                watermark_policy=last.entry.confs.get(WATERMARK_POLICY, ""),
                metadata=metadata,
                fingerprint=tracked.fingerprint,
                spark_version=tracked.internals.spark_version,
                application=tracked.internals.application_id,
                generation=(before.drains if before is not None else 0) + 1,
                flushes=plan.flushes,
                processing_time=tracked.processing_time,
                windows=options.incomplete_windows,
                side_output=self._folder(options.side_output_path, metadata) if options.side_output_path and plan.flushes else "",
                side_output_format=options.side_output_format,
                state_export=self._folder(options.state_export_path, metadata)
                if options.state_export_path and plan.operators and not empty
                else "",
                state_rows=self._rows_before,
                first_batch_id=plan.first_batch_id(batch_id, discarded_ids),
                sink_folder=tracked.sink_folder(),
                batch_ids=plan.batch_ids.name,
                flush_may_be_taken=plan.flushes_to_sink,
                earlier_sink_remembers=before is not None and before.ids_are_remembered,
                discarded_ids=discarded_ids,
                empty=empty,
            ),
        )
