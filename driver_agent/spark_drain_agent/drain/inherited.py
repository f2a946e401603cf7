"""A drain that an earlier run brought past the point of no return: this run finishes each query as the application starts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spark_drain_store import DrainOptions, DrainReport, DrainState, QueryReport, reasons

from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.drain.after_commit import AfterCommit
from spark_drain_agent.drain.committed_query import CommittedQuery, DrainUndoneError
from spark_drain_agent.drain.ended import DrainEndedError
from spark_drain_agent.drain.host import POLL_SECONDS, DrainHost
from spark_drain_agent.drain.phases import Finished
from spark_drain_agent.drain.query_report import describe_query
from spark_drain_agent.drain.reporter import Reporter
from spark_drain_agent.drain.request import Request
from spark_drain_agent.durations import START
from spark_drain_agent.milestones import LOG
from spark_drain_agent.queries.tracked import TrackedQuery

__all__ = ["InheritedDrain"]


class InheritedDrain:
    """The queries of an inherited drain; none of them starts again, each is drained instead.

    Parameters
    ----------
    host
        The agent.
    request
        What was asked for.
    reporter
        The drain's report.
    inherited
        What the earlier run reported; None where only a checkpoint's journal knows of the drain.
    """

    def __init__(self, host: DrainHost, request: Request, reporter: Reporter, inherited: DrainReport | None) -> None:
        self._host, self._request, self._reporter, self._inherited = host, request, reporter, inherited
        queries = inherited.queries if inherited is not None else ()
        self._after = AfterCommit(request, reporter, kept=queries)
        self._drained = {query.checkpoint_location: query for query in queries if query.state == DrainState.DRAINED}
        self._missing = {query.checkpoint_location for query in queries if query.state != DrainState.DRAINED}
        self._depends_on = {query.checkpoint_location: query.depends_on for query in queries}
        self._said = {query.checkpoint_location: query for query in queries}
        self._offered: list[TrackedQuery] = []

    @property
    def targets(self) -> tuple[CommittedQuery, ...]:
        """The queries that were taken up in this run."""
        return self._after.targets

    @property
    def misses_queries(self) -> bool:
        """Whether the drain cannot end before the application starts more of its queries."""
        return bool(self._missing)

    def offer(self, tracked: TrackedQuery) -> None:
        """Take a query that was kept from starting, in the user's thread, to finish its checkpoint."""
        self._offered.append(tracked)
        said = self._drained.get(tracked.location or "")
        if said is not None and _was_taken_back(tracked, said, self._request.drain_id):
            LOG.warning("drain %s: %s is not as it was left", self._request.drain_id, tracked.label)
            self._reporter.change(state=DrainState.STALLED, reason=reasons.DRAIN_UNDONE, message=str(DrainUndoneError.of(tracked)))

    def finish(self, options: DrainOptions) -> Finished:
        """Finish what the earlier run began.

        Raises
        ------
        DrainEndedError
            Nobody waits for the drain any more, and a query is missing.
        SparkStoppedError
            The SparkContext was stopped, or the application goes on with another one.
        """
        inherited, gone = self._inherited, False
        if inherited is None or inherited.state is not DrainState.DRAINED:
            self._reporter.change(state=DrainState.FLUSHING, reason="", message="goes on in a new run of the driver")
        quiet = START.read_or_default(self._host.internals.session_conf)
        with self._reporter.timed("flush"):
            # Without a list of queries from the earlier run, the application's main thread says when all have been started.
            while self._missing or inherited is None:
                tracked = _next(self._offered, self._depends_on, self._missing)
                if tracked is not None:
                    self._finish(tracked, options)
                    continue
                if (self._host.gate.user_is_waiting and self._host.gate.in_place(quiet)) or gone:
                    if inherited is None:
                        break
                    self._miss(self._missing - {item.location for item in self._offered})
                gone = self._request.wait_with_spark(POLL_SECONDS)
        return Finished(options, self._after.reports, dict(self._host.internals.executors()))

    def _finish(self, tracked: TrackedQuery, options: DrainOptions) -> None:
        report, said = describe_query(tracked), self._said.get(tracked.key)
        if said is not None:  # what was planned, without which nobody is told what a flush leaves
            report = replace(
                report,
                id=said.id,
                depends_on=said.depends_on,
                fingerprint=said.fingerprint,
                operators=said.operators,
                warnings=said.warnings,
            )
        target = CommittedQuery(tracked, options, self._request.drain_id, report)
        self._after.add(target)
        self._after.finish(target)
        self._missing.discard(tracked.location or "")

    def _miss(self, missing: set[str]) -> None:
        """Show that a query is not drained and that this run does not start it: calling it drained would hide its open windows."""
        message = (
            f"the drain of {', '.join(sorted(missing))} was interrupted and this run has started no query with that checkpoint: "
            "start the version that was being drained, it finishes the drain. If this is that one, and starts that query only when another "
            "one, which is held, runs or has ended: remove the drain's request and start it again. A program that has gone on to other "
            "checkpoints has to start a query on that checkpoint once more: only that start finishes the drain"
        )
        if self._request.gone.is_set():
            raise DrainEndedError(DrainState.FAILED, reasons.QUERY_NOT_STARTED, message)
        if self._reporter.report.state is not DrainState.STALLED:
            LOG.warning("drain %s: %s", self._request.drain_id, message)
            self._reporter.change(state=DrainState.STALLED, reason=reasons.QUERY_NOT_STARTED, message=message, queries=self._after.reports)


def _was_taken_back(tracked: TrackedQuery, said: QueryReport, drain_id: str) -> bool:
    """Return whether a checkpoint that a report calls drained is another one now: an archive or a backup was put back."""
    if not said.archive and said.flush_batch_id is None:
        return False  # the drain has left it as it was
    journal = read_journal(tracked.checkpoint_files())
    return journal is None or journal.drain_id != drain_id or journal.taken_back


def _next(offered: list[TrackedQuery], depends_on: Mapping[str, tuple[str, ...]], missing: set[str]) -> TrackedQuery | None:
    """Take the next query off the list that depends on no unfinished one; None where each waits for another."""
    for index, tracked in enumerate(offered):
        if not missing.intersection(depends_on.get(tracked.key, ())):
            return offered.pop(index)
    return None
