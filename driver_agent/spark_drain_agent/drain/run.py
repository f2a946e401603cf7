"""One drain from the first look at its notification to the moment the driver may go: fresh, or inherited from an earlier run."""

from __future__ import annotations

from contextlib import suppress

from pyspark.errors import StreamingQueryException
from spark_drain_store import DrainNotification, DrainReport, DrainState, UnsupportedOptionError, WithdrawalAnswer, reasons

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.drain.after_commit import finish_all
from spark_drain_agent.drain.before_commit import BeforeCommit
from spark_drain_agent.drain.committed_query import CommittedQuery
from spark_drain_agent.drain.decide import Assignment, Decision
from spark_drain_agent.drain.ended import DrainEndedError, GivenUp, SparkStoppedError
from spark_drain_agent.drain.executor_reports import ExecutorSummary, collect_executor_reports
from spark_drain_agent.drain.host import DrainHost
from spark_drain_agent.drain.inherited import InheritedDrain
from spark_drain_agent.drain.phases import Committed, Finished
from spark_drain_agent.drain.reporter import Reporter
from spark_drain_agent.drain.request import Request
from spark_drain_agent.gate import Phase
from spark_drain_agent.milestones import LOG, reached
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.user_code.callbacks import CallbackError, DrainContext, call_back

__all__ = ["Drain"]

_ASK_AGAIN_SECONDS = 10.0
_LOOK_SECONDS = 1.0


class Drain:
    """One drain in this run; `run` in a thread of its own, `update` from the monitor.

    Parameters
    ----------
    host
        The agent.
    decision
        The notification and what it means to this run.
    for_next_version
        Whether an earlier drain has ended the application's queries, and the application was to end then.
    """

    def __init__(self, host: DrainHost, decision: Decision, *, for_next_version: bool = False) -> None:
        self._host = host
        self.request = Request(decision.notification, lambda: host.internals.stopped)
        self._reporter = Reporter(host.channel, host.identity, self.drain_id, decision.report)
        forward = decision.assignment is Assignment.FORWARD
        self._inherited = InheritedDrain(host, self.request, self._reporter, decision.report) if forward else None
        self._before = (
            None if forward else BeforeCommit(host, self.request, self._reporter, self.concerns, for_next_version=for_next_version)
        )
        self._names = _names(decision.notification)
        self._committed: Committed | None = None
        self._executors: ExecutorSummary | None = None
        self.given_up: GivenUp | None = None
        """Why it was given up beyond its point of no return; None until then."""

    @property
    def drain_id(self) -> str:
        """The drain."""
        return self.request.drain_id

    @property
    def report(self) -> DrainReport:
        """The drain report as it is now."""
        return self._reporter.report

    @property
    def forward(self) -> bool:
        """Whether an earlier run passed the point of no return, so that no query may start again."""
        return self._inherited is not None

    @property
    def _beyond_return(self) -> bool:
        return self._committed is not None or self.forward

    def owned(self) -> tuple[TrackedQuery, ...]:
        """Return the running queries that this drain is about; past its point of no return it ends them."""
        return self._before.targets if self._before is not None else ()

    def concerns(self, tracked: TrackedQuery) -> bool:
        """Return whether a query that is started belongs to this drain; does not block."""
        return self._concerned(tracked.captured.query_name, tracked.location)

    def _concerned(self, query_name: str, location: str | None) -> bool:
        if self._names is None or query_name in self._names:
            return True
        return location is not None and self.query_id_at(location) is not None

    def query_id_at(self, location: str) -> str | None:
        """Return the id of the query that this drain is about at a checkpoint location, or None."""
        return next((query.id for query in self.report.queries if query.checkpoint_location == location), None)

    @property
    def abandoned(self) -> bool:
        """Whether its request was removed before it was done: it is given up, and nobody waits for a flush that may wait for him."""
        return self.request.gone.is_set() and self.report.state is not DrainState.DRAINED

    @property
    def keeps_driver(self) -> bool:
        """Whether the driver must stay: for a drain of the whole application until it lets go, for another one while it can get on."""
        if self.abandoned:
            return False
        return self._names is None or (self._beyond_return and self.report.state not in (DrainState.DRAINED, DrainState.STALLED))

    @property
    def rests(self) -> bool:
        """Whether it leaves the application alone, for days perhaps: it is only planned, or done with the queries that it names."""
        return self.request.only_planned or (self._names is not None and self.report.state is DrainState.DRAINED)

    @property
    def ends_application(self) -> bool:
        """Whether the application has been drained, and is to end as soon as the request is removed."""
        return self.report.state is DrainState.DRAINED and self.request.options().after_drain != "Keep"

    def update(self, notification: DrainNotification | None) -> None:
        """Take note of the notification's present contents; None when it was removed."""
        self.request.update(notification)
        if notification is not None:
            self._answer_withdrawal()

    def _answer_withdrawal(self) -> None:
        if self.request.withdrawn and self._beyond_return and not self.report.withdrawal:
            ended = self.report.state is DrainState.DRAINED
            late = "its end, and changes nothing" if ended else "the point of no return: the drain goes on to its end"
            told = f"the withdrawal came after {late}; {self.report.message}".removesuffix("; ")
            self._reporter.change(withdrawal=WithdrawalAnswer.TOO_LATE, message=told)

    @property
    def misses_queries(self) -> bool:
        """Whether an inherited drain cannot end before the application starts more of its queries."""
        return self._inherited is not None and self._inherited.misses_queries

    @property
    def gives_up(self) -> bool:
        """Whether it has let its queries go, and not said so yet."""
        return not self._beyond_return and self.report.state is DrainState.STOPPING and self._host.gate.phase is Phase.OPEN

    def overtake(self) -> None:
        """End as soon as nothing works on it any more: the application goes on with another SparkContext, whose drain it is now."""
        self.request.overtake()

    def refuse(self, reason: str, message: str) -> None:
        """Answer in place of `run`; nothing was touched."""
        self._report_end(DrainEndedError(DrainState.REJECTED, reason, message))

    def offer(self, tracked: TrackedQuery) -> None:
        """Take a query that was kept from starting, to finish its checkpoint; only a drain that is `forward` needs it."""
        if self._inherited is not None:
            self._inherited.offer(tracked)

    def run(self) -> None:
        """Drain; returns when the driver may go on or go."""
        with as_agent():
            try:
                self._to_the_end()
            except Exception as error:
                if self._overtaken(error):
                    if self._host.internals.jvm_ended:
                        LOG.info("drain %s: its JVM has ended; the application's next run continues it", self.drain_id)
                    else:
                        self._give_up("its SparkContext was stopped before the queries were at their ends", error)
                        LOG.info("drain %s: its SparkContext was stopped; the application's next one continues it", self.drain_id)
                elif isinstance(error, DrainEndedError):
                    self._give_up(str(error), error.__cause__ or error)
                    self._report_end(error)
                else:
                    LOG.exception("drain %s: unexpected error", self.drain_id)
                    self._survive(error)
            finally:
                try:
                    self._let_go()
                    self._forget_ended()
                finally:
                    self._host.gate.turn(Phase.OPEN)  # or nothing would ever let the driver go

    def _overtaken(self, error: Exception) -> bool:
        """Return whether Spark was stopped, by main before the drain could hold it or by itself: what it refuses then is no answer."""
        if isinstance(error, DrainEndedError) and error.reason in (reasons.WITHDRAWN, reasons.DEADLINE_EXCEEDED):
            return False
        if self._host.internals.jvm_ended:
            return True
        return isinstance(error, SparkStoppedError) or self.request.overtaken or self._host.internals.stopped

    def _give_up(self, message: str, cause: BaseException) -> None:
        """Let the application see a drain that will not be finished in this run: a driver that ends well is not started again."""
        if not self._beyond_return or not self._unfinished:
            return
        if isinstance(cause.__cause__, StreamingQueryException):
            cause = cause.__cause__
        self.given_up = GivenUp(f"drain {self.drain_id}: {message}", cause)
        with suppress(*JavaError):  # a JVM that dies right now
            self._host.held.give_up(self.owned(), self.given_up)

    @property
    def _unfinished(self) -> bool:
        return self.misses_queries or bool(self._started_again) or not all(target.finished for target in self._targets)

    @property
    def _targets(self) -> tuple[CommittedQuery, ...]:
        if self._inherited is not None:
            return self._inherited.targets
        return self._committed.targets if self._committed is not None else ()

    def _let_go(self) -> None:
        """Leave the checkpoints to the next start: it may be one of this process, which does not end."""
        for target in self._targets:
            try:
                target.let_go()
            except (*JavaError, OSError) as error:
                LOG.warning("drain %s: the lease on the checkpoint of %s stays until it is void: %s", self.drain_id, target.label, error)

    def _forget_ended(self) -> None:
        """Let the user's awaitAnyTermination wait on where others run beside the queries that were drained."""
        try:
            if self._beyond_return:
                self._host.held.forget_drained()
        except JavaError as error:
            LOG.warning("drain %s: awaitAnyTermination() may return for the drained queries: %s", self.drain_id, error)

    def _to_the_end(self) -> None:
        if self._before is None:
            assert self._inherited is not None
            options = self.request.options()
            self._answer_withdrawal()  # it may have come while no run was there
            finished = self._inherited.finish(options)
        else:
            committed = self._commit(self._before)
            self._answer_withdrawal()  # it may have come between the last look and the decision
            finished = finish_all(committed, self.request, self._reporter)
        remarks = self._call_back_after(finished)
        self._wait_until_nothing_runs()
        self._report_executors(finished)
        message = "; ".join((_summary(finished), *remarks))
        self._reporter.change_surely(self.request.wait_until_gone, state=DrainState.DRAINED, reason="Drained", message=message)
        reached("drained")
        if self._before is None:
            LOG.warning("drain %s: begun by an earlier run; this one starts none of its queries while the request is there", self.drain_id)
        LOG.info("drain %s: drained; the driver stays until the notification is removed", self.drain_id)
        self._ask_silent_executors(finished)
        self.request.wait_until_gone()
        LOG.info("drain %s: the notification is gone; the driver may go", self.drain_id)

    def _commit(self, before: BeforeCommit) -> Committed:
        committed = before.run()
        self._committed = committed  # from here on there is no return
        self._reporter.change_surely(
            self.request.wait_with_spark,
            state=DrainState.COMMITTING,
            reason="",
            message="past the point of no return",
            queries=tuple(target.report for target in committed.targets),
        )
        reached("committing")
        return committed

    def _call_back_after(self, finished: Finished) -> tuple[str, ...]:
        context = DrainContext(drain_id=self.drain_id, run_id=self._host.identity.run_id, mode=self.request.mode, queries=finished.queries)
        with self._reporter.timed("callbacks"):
            try:
                call_back("after", context, lambda: None)
            except CallbackError as error:
                LOG.warning("drain %s: %s", self.drain_id, error)
                return (str(error),)
        return ()

    @property
    def _started_again(self) -> list[str]:
        """Labels of queries that an inherited drain concerns, and that started before this run knew of it."""
        unasked = self._host.started_unasked.all() if self.forward else ()
        return [start.label for start in unasked if self._concerned(start.query_name, start.location)]

    def _wait_until_nothing_runs(self) -> None:
        """Call no application drained while a query runs in it, as one that a library in Java has started meanwhile.

        Nor a query that was started before this run knew of the drain: what it has read since is not drained.
        """
        while self.forward and any(map(self.concerns, self._host.gate.starts_in_flight())):  # from before as well
            if self.request.wait_with_spark(_LOOK_SECONDS):
                break
        if labels := ", ".join(self._started_again):
            raise DrainEndedError(
                DrainState.FAILED,
                reasons.QUERY_RESTARTED,
                f"drained; but {labels} started before this run of the driver could learn of the drain, since the metadata store did "
                "not answer, and what was read since is not drained: remove the drain's request, and drain once more",
            )
        while self._names is None and (running := self._host.internals.active_queries()):
            message = f"drained, but for what was started meanwhile: stop {', '.join(running.values())}"
            self._reporter.change(state=DrainState.STALLED, reason=reasons.UNSUPPORTED_QUERY, message=message)
            if self.request.wait_with_spark(_LOOK_SECONDS):
                message = f"given up, since its notification was removed; {message}"
                raise DrainEndedError(DrainState.FAILED, reasons.UNSUPPORTED_QUERY, message)

    def _report_executors(self, finished: Finished) -> None:
        """Collect the executors' answers into the report."""
        with self._reporter.timed("executors"):
            self._reporter.change(state=DrainState.REPORTING, reason="", message="", queries=finished.queries)
            reached("reporting")
            self._executors = collect_executor_reports(self._host.internals, finished.executors)
        self._reporter.change(timings=self._reporter.timings, **self._executors.as_changes())

    def _ask_silent_executors(self, finished: Finished) -> None:
        """Ask executors that did not answer again while the driver is held: nobody scales it down before they have."""
        while self._executors is not None and self._executors.silent and not self.request.wait_until_gone(_ASK_AGAIN_SECONDS):
            try:
                self._executors = collect_executor_reports(self._host.internals, finished.executors, self._executors)
            except JavaError as error:
                LOG.info("drain %s: silent executors cannot be asked again: %s", self.drain_id, error)
                return
            self._reporter.change(**self._executors.as_changes())

    def _report_end(self, ended: DrainEndedError) -> None:
        LOG.info("drain %s: %s (%s): %s", self.drain_id, ended.state, ended.reason, ended)
        told = self._reporter.change_surely(
            self._gone_or_stopped, state=ended.state, reason=ended.reason, message=str(ended), withdrawal=ended.withdrawal
        )
        if not told:
            LOG.info("drain %s: ended without an answer, its notification is gone", self.drain_id)

    def _survive(self, error: Exception) -> None:
        """A defect must not harm the pipeline: before the point of no return it runs on, beyond it the driver waits to be looked at."""
        message = f"unexpected {type(error).__name__}: {in_words(error)}"
        if not self._beyond_return:
            self._report_end(DrainEndedError(DrainState.FAILED, reasons.INTERNAL_ERROR, f"{message}; the queries run on"))
            return
        told = self._told_of(message)
        try:
            while not self.request.wait_with_spark(_ASK_AGAIN_SECONDS):
                told = told or self._told_of(message)
            why = "given up, since its notification was removed"
        except SparkStoppedError as stopped:
            why = str(stopped)
        self._give_up(f"{why}; {message}", error)

    def _told_of(self, message: str) -> bool:
        """Return whether the store has taken the report of a defect: the driver waits whether or not anyone is told."""
        try:
            return self._reporter.change(state=DrainState.STALLED, reason=reasons.INTERNAL_ERROR, message=message)
        except Exception as defect:
            LOG.warning("drain %s: cannot be reported as Stalled yet: %s: %s", self.drain_id, type(defect).__name__, in_words(defect))
            return False

    def _gone_or_stopped(self, seconds: float) -> bool:
        try:
            return self.request.wait_until_gone(seconds)
        except SparkStoppedError:
            return True


def _summary(finished: Finished) -> str:
    count = len(finished.queries)
    done = f"{count} {'query' if count == 1 else 'queries'} {'stopped' if finished.options.mode == 'Stop' else 'drained'}"
    return "; ".join((done, *finished.left_alone))


def _names(notification: DrainNotification) -> frozenset[str] | None:
    """Return the names of the queries that are asked for; None for the whole application, or where it cannot be understood."""
    try:
        queries = notification.parsed_options().queries
    except UnsupportedOptionError:
        return None
    return frozenset(queries) if queries is not None else None
