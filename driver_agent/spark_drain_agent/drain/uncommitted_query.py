"""One query up to the point of no return: plan it, let it catch up, take its sources away, give them back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from spark_drain_store import DrainOptions, DrainState, QueryReport

from spark_drain_agent.checkpoint.logs import CommittedBatch
from spark_drain_agent.checkpoint.state_export import batch_with_state
from spark_drain_agent.drain.committed_query import CommittedQuery
from spark_drain_agent.drain.connections import Connection
from spark_drain_agent.drain.planned import planned, refuse_confs, refuse_export, refuse_side_output, refuse_unknown_end
from spark_drain_agent.drain.query_report import describe_planned, describe_query
from spark_drain_agent.queries.catch_up import CatchUp, UnknownEndError
from spark_drain_agent.queries.freeze import FrozenQuery, QueryEndedError, freeze, wait_until_settled
from spark_drain_agent.queries.real_time import pause
from spark_drain_agent.queries.standing import Standing
from spark_drain_agent.queries.tracked import TrackedQuery

__all__ = ["UncommittedQuery"]


class UncommittedQuery:
    """One query in a drain that can still be given up.

    Parameters
    ----------
    tracked
        The query.
    options
        What was asked for.

    Raises
    ------
    PlanRejectedError
        The query cannot be drained in that way.
    """

    def __init__(self, tracked: TrackedQuery, options: DrainOptions) -> None:
        self._tracked, self._options = tracked, options
        refuse_confs(tracked.internals)
        self._plan = planned(tracked, options)
        self._frozen: FrozenQuery | None = None
        transforms = any(operator.name.startswith("TransformWithState") for operator in self._plan.operators)
        self._state_counts = transforms or options.state_export_path is not None
        self._state_seen = self._state_counts and tracked.location is not None and batch_with_state(tracked.checkpoint()) is not None
        self._newest: int | None = None
        self._last: CommittedBatch | None = None
        self._report = replace(describe_planned(describe_query(tracked), self._plan), state="Running", fingerprint=tracked.fingerprint)
        self._warnings = self._report.warnings

    @property
    def tracked(self) -> TrackedQuery:
        """The query."""
        return self._tracked

    @property
    def frozen(self) -> bool:
        """Whether its sources are taken away."""
        return self._frozen is not None

    @property
    def stopped(self) -> bool:
        """Whether the application has stopped the query; one that failed was not stopped, a bounded one ends by itself."""
        live = self._tracked.live
        ended = not live.thread_alive or (self.real_time and not live.active)  # while it is held, its thread cannot end
        return not self._plan.bounded and ended and not live.error

    @property
    def report(self) -> QueryReport:
        """The query as it is now."""
        return self._report

    @property
    def key(self) -> str:
        """What tells the query from every other one of the application."""
        return self._tracked.key

    @property
    def label(self) -> str:
        """How messages call the query."""
        return self._tracked.label

    @property
    def real_time(self) -> bool:
        """Whether the query runs in real-time mode."""
        return self._tracked.real_time

    @property
    def bounded(self) -> bool:
        """Whether the query ends by itself."""
        return self._plan.bounded

    @property
    def dependent(self) -> bool:
        """Whether the query is drained after others, whose last records it reads first."""
        return bool(self._report.depends_on)

    def depend_on(self, connection: Connection) -> None:
        """Take note of how the query hangs together with others."""
        self._report = replace(self._report, depends_on=connection.writers, warnings=(*self._warnings, *connection.warnings))

    def catch_up(self, keep_waiting: Callable[[], None]) -> CatchUp | None:
        """Note how far the sources' data goes now; None for a bounded query, which knows its end."""
        if self._plan.bounded:
            return None
        tracked = self._tracked
        try:
            return CatchUp(tracked.internals, tracked.live, tracked.running_checkpoint(), keep_waiting)
        except UnknownEndError as error:  # a query that had just been started had no sources yet when it was planned
            refuse_unknown_end(tracked, str(error))
            raise

    def freeze(self, keep_waiting: Callable[[], None]) -> None:
        """Take the sources away; a bounded query is left to run to its end, one in real-time mode to the end of its batch."""
        if not self._plan.bounded and not self.real_time and self._frozen is None:
            self._frozen = freeze(self._tracked.live, keep_waiting)
            self._tracked.keep_temporary_checkpoint()
        self._report = replace(self._report, state=DrainState.STOPPING, checkpoint_location=self._tracked.location or "")

    def under_way(self) -> str:
        """Return what still has to end of what a frozen query began, or ""."""
        if self._frozen is None:
            what = "the batch of {}, which real-time mode ends" if self.real_time else "the rest of {}, which is bounded"
            return what.format(self.label) if self._tracked.live.thread_alive else ""
        if not self._tracked.live.trigger_active:
            return ""
        checkpoint = self._tracked.checkpoint()
        return "" if checkpoint.settled else f"batch {checkpoint.newest_offsets} of {self.label}"

    def wait_until_settled(self, keep_waiting: Callable[[], None]) -> None:
        """Wait until nothing is in flight."""
        if self.real_time and self._frozen is None:
            self._frozen = pause(self._tracked.live, keep_waiting)
            self._tracked.keep_temporary_checkpoint()
        if self._frozen is not None:
            self._newest = wait_until_settled(self._frozen.live, self._tracked.checkpoint(), keep_waiting)
        else:
            self._tracked.live.wait_until_ended(keep_waiting)
            self.check_running()

    def let_stop(self, keep_waiting: Callable[[], None]) -> None:
        """Let a query end that the application stops meanwhile.

        Its `stop()` waits for the thread of one that is paused, and the sources of any are to be closed.
        """
        if self._frozen is None or self._frozen.live.active:
            return
        if self.real_time:
            self.thaw()
            self._tracked.live.wait_until_ended(keep_waiting)
        elif not self._frozen.live.thread_alive:
            self.thaw()

    def check_running(self) -> None:
        """Refuse to go on with a query that has failed, perhaps while another one was waited for.

        Raises
        ------
        QueryEndedError
            It has ended with an exception.
        """
        live = self._tracked.live
        if not live.thread_alive and (error := live.error):
            raise QueryEndedError(error)

    def check_outputs(self) -> None:
        """Try, with a Spark job that writes no rows, whether what the drain is to write beside the sink can be written.

        Raises
        ------
        PlanRejectedError
            It cannot.
        """
        refuse_side_output(self._tracked, self._options, self._plan)
        refuse_export(self._tracked, self._options)

    def check_checkpoint(self) -> None:
        """Refuse checkpoint formats that the later steps would not understand, and state that was not there yet when it was planned.

        Raises
        ------
        PlanRejectedError
            The state has a time to live, as only its first batch has noted, or cannot be exported.
        UnknownCheckpointFormatError
            The logs are of a later Spark.
        """
        checkpoint = self._tracked.checkpoint() if self._tracked.location else None
        newest = self._newest if checkpoint is None or self._newest is not None else checkpoint.newest_commit
        self._last = checkpoint.committed_batch(newest) if checkpoint is not None and newest is not None else None
        if self._state_counts and not self._state_seen:
            self._plan = planned(self._tracked, self._options)
            refuse_export(self._tracked, self._options)
            self._state_seen = True

    def thaw(self) -> None:
        """Undo `freeze`."""
        if self._frozen is not None:
            self._frozen.thaw()
            self._frozen = None
            self._tracked.drop_temporary_checkpoint()
        self._newest = self._last = None
        self._report = replace(self._report, state="Running", checkpoint_location=self._tracked.location or "")

    def report_given_up(self, running: Collection[str]) -> QueryReport:
        """Return the query as it is once the drain is given up, by the keys of the queries that run: it may have ended, or run again."""
        standing = self._tracked.standing()
        again = self.key != self.label and self.key in running  # several may have one label
        if standing is Standing.RUNS or again:
            return replace(self._report, state="Running")
        return replace(self._report, state="Failed" if standing is Standing.FAILED else "Ended")

    def commit(self, drain_id: str) -> CommittedQuery:
        """Hand the query over to what happens past the point of no return."""
        if self._frozen is not None:
            self._frozen.end()
        return CommittedQuery(self._tracked, self._options, drain_id, self._report, plan=self._plan, frozen=self._frozen, last=self._last)
