"""One drain from the first look at its notification to the moment the driver may go: fresh, or inherited from an earlier run."""

from __future__ import annotations

import time

from spark_drain_store import DrainNotification, DrainState

from spark_drain_agent import reasons
from spark_drain_agent.bypass import as_agent
from spark_drain_agent.callbacks import CallbackError, call_back
from spark_drain_agent.decide import Assignment, Decision
from spark_drain_agent.executors import warm_up
from spark_drain_agent.finishing import finish_all, finish_offered, report_executors
from spark_drain_agent.go_no_go import commit_to_drain, parse_options
from spark_drain_agent.hold import Phase
from spark_drain_agent.ongoing import DrainEndedError, DrainHost, OngoingDrain, SparkStoppedError
from spark_drain_agent.queries import TrackedQuery
from spark_drain_agent.spark_internals import JavaError
from spark_drain_agent.trace import LOG, reached

__all__ = ["Drain"]


class Drain:
    """One drain in this run; `run` in a thread of its own, `update` from the monitor.

    Parameters
    ----------
    host
        The agent.
    decision
        The notification and what it means to this run.
    """

    def __init__(self, host: DrainHost, decision: Decision) -> None:
        self._host = host
        self._drain = OngoingDrain(host, decision)
        self.forward = decision.assignment is Assignment.FORWARD
        self._drain.beyond_return = self.forward
        self._offered: list[TrackedQuery] = []
        self._remarks: list[str] = []

    @property
    def uuid(self) -> str:
        """The notification's uuid."""
        return self._drain.uuid

    def owns(self, query_id: str) -> bool:
        """Return whether a running query belongs to this drain."""
        return any(target.query_id == query_id for target in self._drain.targets)

    def update(self, notification: DrainNotification | None) -> None:
        """Take note of the notification's present contents; None when it was removed."""
        drain = self._drain
        if notification is None:
            drain.gone.set()
            return
        drain.notification = notification
        self._answer_withdrawal()

    def _answer_withdrawal(self) -> None:
        drain = self._drain
        if drain.notification.withdrawn and drain.beyond_return and not drain.reporter.report.withdrawal:
            drain.reporter.change(withdrawal="TooLate", message="withdrawn after the point of no return: the drain goes on to its end")

    @property
    def misses_queries(self) -> bool:
        """Whether an inherited drain cannot end before the application starts more of its queries."""
        return bool(self._drain.missing)

    def offer(self, tracked: TrackedQuery) -> None:
        """Take a query that was kept from starting, to finish its checkpoint."""
        self._offered.append(tracked)

    def run(self) -> None:
        """Drain; returns when the driver may go on or go."""
        with as_agent():
            try:
                self._to_the_end()
            except Exception as error:
                if self._overtaken(error):
                    LOG.info("drain %s: its SparkContext was stopped; the application's next one goes on with it", self.uuid)
                elif isinstance(error, DrainEndedError):
                    self._report_end(error)
                else:
                    LOG.exception("drain %s: unexpected error", self.uuid)
                    self._survive(error)
            finally:
                if self._drain.beyond_return:
                    self._forget_ended()
                self._host.gate.turn(Phase.OPEN)

    def _overtaken(self, error: Exception) -> bool:
        """Return whether main stopped Spark before the drain could hold it: what Spark refuses then is no answer to the request."""
        if isinstance(error, DrainEndedError) and error.reason in (reasons.WITHDRAWN, reasons.DEADLINE_EXCEEDED):
            return False
        return isinstance(error, SparkStoppedError) or (not self._drain.beyond_return and self._host.internals.stopped)

    def _forget_ended(self) -> None:
        """Let the user's awaitAnyTermination wait on where others run beside the queries that were drained."""
        try:
            beside = self._drain.beside
            if beside and all(tracked.live.thread_alive for tracked in beside):
                for streams in {id(tracked.internals.session): tracked.internals.session.streams for tracked in beside}.values():
                    streams.resetTerminated()
        except JavaError as error:
            LOG.warning("drain %s: awaitAnyTermination() may return for the drained queries: %s", self.uuid, error)

    def _to_the_end(self) -> None:
        drain = self._drain
        if self.forward:
            drain.options = parse_options(drain)
            self._answer_withdrawal()  # it may have come while no run was there
            finish_offered(drain, self._offered)
        else:
            commit_to_drain(drain)
            self._answer_withdrawal()  # it may have come between the last look and the decision
            warm_up(self._host.internals)
            finish_all(drain)
        self._call_back_after()
        report_executors(drain)
        drain.reporter.change_surely(time.sleep, state=DrainState.DRAINED, reason="Drained", message=self._summary())
        reached("drained")
        LOG.info("drain %s: drained; the driver stays until the notification is removed", self.uuid)
        drain.gone.wait()
        LOG.info("drain %s: the notification is gone; the driver may go", self.uuid)

    def _call_back_after(self) -> None:
        drain = self._drain
        with drain.timed("callbacks"):
            try:
                call_back("after", drain.for_callbacks(), lambda: None)
            except CallbackError as error:
                LOG.warning("drain %s: %s", self.uuid, error)
                self._remarks.append(str(error))

    def _report_end(self, ended: DrainEndedError) -> None:
        LOG.info("drain %s: %s (%s): %s", self.uuid, ended.state, ended.reason, ended)
        self._drain.reporter.change_surely(
            self._wait_unless_gone, state=ended.state, reason=ended.reason, message=str(ended), withdrawal=ended.withdrawal
        )

    def _survive(self, error: Exception) -> None:
        """A defect must not harm the pipeline: before the point of no return it runs on, beyond it the driver waits to be looked at."""
        message = f"unexpected {type(error).__name__}: {str(error)[:500]}"
        if not self._drain.beyond_return:
            self._report_end(DrainEndedError(DrainState.FAILED, reasons.INTERNAL_ERROR, f"{message}; the queries run on"))
            return
        self._drain.reporter.change(state=DrainState.STALLED, reason=reasons.INTERNAL_ERROR, message=message)
        self._drain.gone.wait()

    def _wait_unless_gone(self, seconds: float) -> None:
        if self._drain.gone.wait(seconds):
            raise SystemExit

    def _summary(self) -> str:
        count = len(self._drain.query_reports())
        done = f"{count} {'query' if count == 1 else 'queries'} {'stopped' if self._drain.options.mode == 'Stop' else 'drained'}"
        before = self._drain.stopped_before
        if before:
            self._remarks.append(f"the application had stopped {', '.join(before)} itself: what is open there was not emitted")
        return "; ".join([done, *self._remarks])
