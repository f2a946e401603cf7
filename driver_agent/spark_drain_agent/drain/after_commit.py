"""Beyond the point of no return: finish every query, however often that takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from spark_drain_store import DrainState, QueryReport, reasons

from spark_drain_agent.agent_thread import side_by_side
from spark_drain_agent.checkpoint.files import CheckpointLeasedError
from spark_drain_agent.checkpoint.flush import FlushError, NoThreadStartsError
from spark_drain_agent.checkpoint.journal import MalformedJournalError
from spark_drain_agent.checkpoint.logs import UnknownCheckpointFormatError
from spark_drain_agent.checkpoint.state_export import ExportError
from spark_drain_agent.drain.committed_query import CommittedQuery, DrainUndoneError
from spark_drain_agent.drain.ended import DrainEndedError
from spark_drain_agent.drain.phases import Committed, Finished
from spark_drain_agent.drain.reporter import Reporter
from spark_drain_agent.drain.request import Request
from spark_drain_agent.milestones import LOG, reached
from spark_drain_agent.planning.plan import PlanRejectedError
from spark_drain_agent.queries.flush_launch import RecoveryNeedsPreviousVersionError
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.writer import SAME_VERSION_CONF

__all__ = ["AfterCommit", "finish_all"]

_TRIES_BEFORE_STALLED = 3
_TOGETHER = 4
_RETRY_SECONDS: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (NoThreadStartsError, reasons.UNSUPPORTED_SESSION),
    (DrainUndoneError, reasons.DRAIN_UNDONE),
    (RecoveryNeedsPreviousVersionError, reasons.RECOVERY_NEEDS_PREVIOUS_VERSION),
    (CheckpointLeasedError, reasons.CHECKPOINT_LEASED),
    (FlushError, reasons.FLUSH_FAILED),
    (ExportError, reasons.STATE_EXPORT_FAILED),
    *((kind, reasons.CHECKPOINT_UNWRITABLE) for kind in JavaError),
    (OSError, reasons.CHECKPOINT_UNWRITABLE),
    (MalformedJournalError, reasons.CHECKPOINT_UNWRITABLE),
    (PlanRejectedError, reasons.UNSUPPORTED_QUERY),
    (UnknownCheckpointFormatError, reasons.UNSUPPORTED_QUERY),
)
_AT_ONCE = (NoThreadStartsError, RecoveryNeedsPreviousVersionError, DrainUndoneError)
_TRIED_AGAIN = "; it is tried again while the drain is requested"
_NEXT_START = "; the next start of the same version finishes or undoes what was begun"
_TIMEOUT_IN_THE_PAST = "cannot be earlier than the current watermark"
"""What Spark says where a function sets a timeout in event time: INVALID_TIMEOUT_TIMESTAMP in Python."""


class AfterCommit:
    """The queries of a drain on their ways to their ends.

    Parameters
    ----------
    request
        What was asked for.
    reporter
        The drain's report.
    targets
        The queries to finish; more can be added.
    kept
        What an earlier run reported of the queries.
    """

    def __init__(
        self, request: Request, reporter: Reporter, targets: Sequence[CommittedQuery] = (), kept: Sequence[QueryReport] = ()
    ) -> None:
        self._request, self._reporter, self._kept = request, reporter, kept
        self._targets = list(targets)
        self._stalled: dict[str, tuple[str, str]] = {}
        self._waits: dict[str, str] = {}

    @property
    def targets(self) -> tuple[CommittedQuery, ...]:
        """The queries that were taken up."""
        return tuple(self._targets)

    @property
    def reports(self) -> tuple[QueryReport, ...]:
        """The queries as they are now; what an earlier run said of those that are not taken up is kept."""
        mine = {target.report.checkpoint_location for target in self._targets}
        kept = (query for query in self._kept if query.checkpoint_location not in mine)
        return (*kept, *(target.report for target in self._targets))

    def add(self, target: CommittedQuery) -> None:
        """Take up one more query."""
        self._targets.append(target)

    def finish(self, target: CommittedQuery) -> None:
        """Bring one query to its end; a failing batch is shown and tried again, never skipped.

        Raises
        ------
        DrainEndedError
            Nobody waits for the drain any more.
        SparkStoppedError
            The SparkContext was stopped, or the application goes on with another one.
        """
        tries = 0
        while True:
            try:
                self._stalled.pop(target.key, None)
                self._tell_wait(target, "")
                target.finish(partial(self._tell_wait, target))
                self._reporter.change(queries=self.reports)
                return
            except tuple(kind for kind, _ in _REASONS) as error:
                LOG.warning("drain %s: %s: %s", self._request.drain_id, target.label, in_words(error))
                failure, reason = error, next(name for kind, name in _REASONS if isinstance(error, kind))
                tried_again = "" if isinstance(error, (DrainUndoneError, NoThreadStartsError)) else _TRIED_AGAIN
                next_start = "" if isinstance(error, DrainUndoneError) else _NEXT_START
                if tries >= _TRIES_BEFORE_STALLED or isinstance(error, _AT_ONCE):
                    message = f"{target.label}: {_told(error, self._request.drain_id)}"
                    target.stall(message)
                    self._stalled[target.key] = (reason, message + tried_again)
                    self._show()
            if self._request.wait_with_spark(_RETRY_SECONDS[min(tries, len(_RETRY_SECONDS) - 1)]) and tries >= _TRIES_BEFORE_STALLED:
                # Nobody waits for this drain any more: let the driver go, the next start finishes or undoes it from the journal.
                message = (
                    f"given up, since its notification was removed{next_start}; {target.label}: {_told(failure, self._request.drain_id)}"
                )
                raise DrainEndedError(DrainState.FAILED, reason, message) from failure
            tries += 1

    def finish_together(self, targets: Sequence[CommittedQuery]) -> None:
        """Finish independent queries side by side: one waits for the filesystem while another one computes."""
        if len(targets) == 1:
            self.finish(targets[0])
            return
        side_by_side(self.finish, targets, _TOGETHER, "spark-drain-flush")

    def _tell_wait(self, target: CommittedQuery, message: str) -> None:
        """Report what a query waits for; "" is nothing."""
        if message:
            self._waits[target.key] = f"{target.label} {message}"
        else:
            self._waits.pop(target.key, None)
        self._show()

    def _show(self) -> None:
        """Report how it goes; one query that stalls is not to be hidden by another one that gets on."""
        stalled, waits = list(self._stalled.values()), [(reasons.CHECKPOINT_LEASED, message) for message in list(self._waits.values())]
        state, (reason, message) = (DrainState.STALLED, stalled[0]) if stalled else (DrainState.FLUSHING, next(iter(waits), ("", "")))
        self._reporter.change(state=state, reason=reason, message=message, queries=self.reports)


def _told(error: Exception, drain_id: str) -> str:
    text = in_words(error)
    if _TIMEOUT_IN_THE_PAST not in text:
        return text
    return (
        f"{text}; in the batch of a drain the watermark is at the end of time, and a function must set no timeout where is_drain_pane() is "
        f"true: a version with a function like that ends the drain with {SAME_VERSION_CONF}={drain_id}, and `python -m spark_drain_agent "
        "recover` gives up the flush"
    )


def finish_all(committed: Committed, request: Request, reporter: Reporter) -> Finished:
    """Finish the queries that were frozen, and after them those that depend on them."""
    after = AfterCommit(request, reporter, committed.targets)
    with reporter.timed("flush"):
        left = list(committed.targets)
        while left:
            unfinished = {target.key for target in left}
            ready = [target for target in left if not unfinished.intersection(target.depends_on)]
            after.finish_together(ready)
            left = [target for target in left if target not in ready]
            if left:
                reached("upstream-finished")
    return Finished(committed.options, after.reports, committed.executors, committed.left_alone)
