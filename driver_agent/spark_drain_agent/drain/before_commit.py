"""Up to the point of no return: plan every query, freeze and check every query, look at the store once more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NoReturn

from spark_drain_store import DrainOptions, DrainState, QueryReport, reasons

from spark_drain_agent.agent_thread import NO_THREAD_STARTS, no_thread_starts
from spark_drain_agent.checkpoint.logs import UnknownCheckpointFormatError
from spark_drain_agent.clock import monotonic
from spark_drain_agent.drain.connections import connect
from spark_drain_agent.drain.ended import DrainEndedError
from spark_drain_agent.drain.host import POLL_SECONDS, DrainHost
from spark_drain_agent.drain.last_look import StoreAwayError, look_again, wait_for_store
from spark_drain_agent.drain.phases import Committed
from spark_drain_agent.drain.planned import refuse_confs
from spark_drain_agent.drain.reporter import Reporter
from spark_drain_agent.drain.request import Request
from spark_drain_agent.drain.running import Running, under_way
from spark_drain_agent.drain.selection import Selection, StartsInFlightError, check_all_seen, select
from spark_drain_agent.drain.starts import Starts
from spark_drain_agent.drain.uncommitted_query import UncommittedQuery
from spark_drain_agent.durations import START
from spark_drain_agent.gate import Phase
from spark_drain_agent.milestones import LOG, reached
from spark_drain_agent.planning.output_paths import check_names, check_outputs
from spark_drain_agent.planning.plan import PlanRejectedError, check_options
from spark_drain_agent.planning.query_graph import CycleError, UnknownDependencyError
from spark_drain_agent.queries.catch_up import CatchUp
from spark_drain_agent.queries.freeze import QueryEndedError
from spark_drain_agent.queries.standing import Standing
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.errors import JavaError, UnsupportedSparkError, in_words, is_denied
from spark_drain_agent.user_code.callbacks import CallbackError, DrainContext, call_back

__all__ = ["BeforeCommit"]

_SILENT_SECONDS = 10.0
_NO_QUERY = "waits until the application has started a query"
_NEXT_VERSION = (
    "waits for the application's next version, since an earlier drain has ended the queries of this one, or until this one starts a query "
    "again"
)
_NOT_IN_PLACE = (
    "waits until the application has started its queries: until its main thread awaits one, or another thread does so, or any of them, "
    f"{{seconds:g}} s after the first start ({START.name}), or none was started for so long; a loop that starts one short query after the "
    "other can be drained only where it awaits them"
)
_DENIED = (
    "the driver lacks a permission that a drain needs; the queries run on: {}; grant its credentials reading, writing, listing and "
    "deleting there"
)
_RESTARTING = "the application stops {} again and again, and starts it anew; the drain waits for a moment in which every query runs"
_LEAVING = "the application is stopping Spark, or ends: nothing can be drained any more, and the queries read on until then"


@dataclass(frozen=True)
class _Planned:
    targets: tuple[UncommittedQuery, ...]
    selection: Selection

    @property
    def reports(self) -> tuple[QueryReport, ...]:
        return tuple(target.report for target in self.targets)


class BeforeCommit:
    """A fresh drain that can still be given up.

    Parameters
    ----------
    host
        The agent.
    request
        What is asked for.
    reporter
        The drain's report.
    concerns
        Tells of a query that is started whether it belongs to the drain.
    for_next_version
        Whether an earlier drain has ended the application's queries, and the application was to end then.
    """

    def __init__(
        self,
        host: DrainHost,
        request: Request,
        reporter: Reporter,
        concerns: Callable[[TrackedQuery], bool],
        *,
        for_next_version: bool = False,
    ) -> None:
        self._host, self._request, self._reporter, self._concerns = host, request, reporter, concerns
        self._for_next_version = for_next_version
        self._starts = Starts(host, concerns, self._pause, lambda message: reporter.change(message=message))
        self._targets: tuple[UncommittedQuery, ...] = ()
        self._outputs_checked: set[TrackedQuery] = set()

    @property
    def targets(self) -> tuple[TrackedQuery, ...]:
        """The queries that it is about, as last planned."""
        return tuple(target.tracked for target in self._targets)

    def run(self) -> Committed:
        """Bring the drain to its point of no return; the gate is left at `Phase.HELD`.

        Raises
        ------
        DrainEndedError
            It was rejected, withdrawn, or could not be done; every query runs on as if nothing had happened.
        """
        self._reporter.change_surely(self._wait_for_reports, state=DrainState.ACKNOWLEDGED, reason="", message="")
        try:
            return self._to_commit(self._request.options())
        except DrainEndedError:
            self._give_back()
            raise

    def _to_commit(self, options: DrainOptions) -> Committed:
        self._check_confs()
        if self._for_next_version:
            self._leave_to_next_version()
        caught_up = False
        while True:
            try:
                with self._reporter.timed("plan"):
                    self._wait_until_in_place()
                    self._starts.let_restart()
                    self._starts.wait()
                    self._plan(options)
                self._wait_for_approval(options)
                if options.mode == "CatchUp" and not caught_up:
                    self._catch_up(options)
                    caught_up = True  # a store that is away afterwards does not make the request a later one
                return self._freeze_and_decide(options)
            except StoreAwayError:
                # The pipeline must not stand still because the API server does: read on, and try again when it is back.
                LOG.warning("drain %s: the metadata store is away; the queries read on until it is back", self._request.drain_id)
                wait_for_store(self._host.channel, self._request, self._reporter)

    def _wait_for_reports(self, seconds: float) -> bool:
        """Wait where nothing is touched: a drain of which nobody can be told is not begun."""
        self._pause(seconds)
        return False

    def _check_confs(self) -> None:
        try:
            refuse_confs(self._host.internals)
        except PlanRejectedError as error:
            raise _explained(error) from error

    def _leave_to_next_version(self) -> None:
        """Wait for the application's end where nothing runs but what an earlier drain has ended, or until it goes on after all."""
        if self._starts.gone_on():
            return
        self._reporter.change(message=_NEXT_VERSION)
        while not self._starts.gone_on():
            self._pause()
        self._reporter.change(message="")

    def _wait_until_in_place(self) -> None:
        gate, registry = self._host.gate, self._host.registry
        quiet = START.read_or_default(self._host.internals.session_conf)
        tell_at, told = monotonic() + _SILENT_SECONDS, False
        while not (gate.in_place(quiet) if registry.all() else gate.waits_in_vain(quiet)):
            if not told and monotonic() > tell_at:
                told = True
                self._reporter.change(message=_NOT_IN_PLACE.format(seconds=quiet) if registry.all() else _NO_QUERY)
            self._pause()
        if told:
            self._reporter.change(message="")

    def _pause(self, seconds: float = POLL_SECONDS) -> None:
        self._keep_waiting()
        time.sleep(seconds)

    def _keep_waiting(self) -> None:
        self._request.keep_waiting()
        for target in self._targets:
            target.let_stop(self._request.keep_waiting)

    def _plan(self, options: DrainOptions) -> _Planned:
        try:
            check_options(options)
            check_outputs(options, self._host.internals)
            selection = self._select(options)
            check_names(options, [item.captured.query_name for item in selection.targets])
            frozen = {target.tracked: target for target in self._targets if target.frozen}
            planned = _Planned(tuple(frozen.get(item) or self._planned(item, options) for item in selection.targets), selection)
            self._check_outputs(planned)
            if options.mode != "Stop":  # nothing is emitted, so nothing needs to arrive
                connections = connect(self._host.internals, selection, self._keep_waiting)
                for target in planned.targets:
                    target.depend_on(connections[target.key])
        except (CycleError, UnknownDependencyError) as error:
            raise DrainEndedError(DrainState.REJECTED, reasons.UNORDERED_QUERIES, str(error)) from error
        except (PlanRejectedError, UnsupportedSparkError, UnknownCheckpointFormatError) as error:
            reason = error.reason if isinstance(error, PlanRejectedError) else reasons.UNSUPPORTED_QUERY
            raise DrainEndedError(DrainState.REJECTED, reason, str(error)) from error
        except JavaError as error:
            if is_denied(error):
                raise DrainEndedError(DrainState.FAILED, reasons.CHECKPOINT_UNWRITABLE, _DENIED.format(in_words(error))) from error
            raise DrainEndedError(DrainState.FAILED, reasons.INTERNAL_ERROR, f"planning failed: {in_words(error)}") from error
        self._thaw([target for target in self._targets if target not in planned.targets])
        self._targets = planned.targets
        self._reporter.change(queries=planned.reports)
        return planned

    def _planned(self, tracked: TrackedQuery, options: DrainOptions) -> UncommittedQuery:
        self._keep_waiting()  # to plan one may take seconds
        return UncommittedQuery(tracked, options)

    def _check_outputs(self, planned: _Planned) -> None:
        for target in planned.targets:
            if target.tracked not in self._outputs_checked:  # a drain is planned again while its queries stand still
                self._keep_waiting()
                target.check_outputs()
                self._outputs_checked.add(target.tracked)

    def _select(self, options: DrainOptions) -> Selection:
        while True:
            try:
                return select(self._host, options)
            except StartsInFlightError:
                self._starts.wait()

    def _wait_for_approval(self, options: DrainOptions) -> None:
        if options.execution == "PlanOnly":
            self._reporter.change(reason=reasons.PLANNED, message="planned; nothing was touched")
            while True:
                self._pause()
        if options.execution == "AfterApproval" and not self._request.approved:
            self._reporter.change(reason=reasons.AWAITING_APPROVAL, message="planned; waits for approval")
            while not self._request.approved:
                self._pause()
            self._host.gate.begin()

    def _catch_up(self, options: DrainOptions) -> None:
        """Read on to the latest offsets of this moment, in all queries at once; one that is stopped meanwhile is not waited for.

        One that the application starts again reads on to those of that moment.
        """
        begun: set[TrackedQuery] = set()
        try:
            with self._reporter.timed("catchUp"):
                while fresh := [target for target in self._targets if target.tracked not in begun]:
                    under_way = [(target, self._begin_to_catch_up(target)) for target in fresh]
                    self._reporter.change(reason=reasons.CATCHING_UP, message=self._reading_on(fresh))
                    for target, catch_up in under_way:
                        if catch_up is not None:
                            _wait_or_stopped(target, catch_up)
                    self._check_replaceable(options)
                    begun.update(target.tracked for target in fresh)
                    if any(target.stopped for target in self._targets):
                        self._starts.let_restart()
                        self._plan(options)
        except (DrainEndedError, PlanRejectedError, QueryEndedError, UnknownCheckpointFormatError, *JavaError, OSError) as error:
            raise self._named_at_the_deadline(_explained(error)) from error

    def _reading_on(self, targets: Iterable[UncommittedQuery]) -> str:
        message = f"{', '.join(target.label for target in targets)}: reading on to the latest offsets of this moment"
        restless = self._starts.restless()
        return f"{message}; the application stops {restless} again and again" if restless else message

    def _begin_to_catch_up(self, target: UncommittedQuery) -> CatchUp | None:
        with _named(target):
            return target.catch_up(self._request.keep_waiting)

    def _freeze_and_decide(self, options: DrainOptions) -> Committed:
        gate = self._host.gate
        gate.turn(Phase.DECIDING, self._concerns)
        called_back = False
        try:
            while True:
                self._request.keep_waiting()
                if self._starts.restless():
                    self._read_on(called_back=called_back)
                self._starts.let_restart()
                known = self._starts.known()
                with self._reporter.timed("freeze"):
                    planned = self._plan(options)  # queries may have come and gone while approval was awaited, and come and go still
                    settled = self._freeze(planned, thaw=not called_back)
                if not settled:
                    self._check_replaceable(options)
                    continue
                if (self._starts.known() != known or self._starts.may_restart) and not called_back:
                    continue  # what was started meanwhile may run long, and until then the others read on
                reached("settled")
                if not called_back:  # what a callback starts is frozen as well, and it is not called for that again
                    with self._reporter.timed("callbacks"):
                        called_back = call_back("before", self._for_callbacks(planned), self._keep_waiting)
                executors = dict(self._host.internals.executors())
                look_again(self._host.channel, self._request, self._reporter, self._keep_waiting)
                self._look_again_at_queries(options)
                if no_thread_starts():
                    raise DrainEndedError(DrainState.REJECTED, reasons.UNSUPPORTED_SESSION, NO_THREAD_STARTS)
                stopped = self._starts.may_restart or any(target.stopped for target in self._targets)
                if not stopped and gate.hold(lambda known=known: self._starts.known() == known):  # type: ignore[misc]
                    break
                if gate.leaving:
                    self._wait_for_the_end()
                self._starts.wait()
        except BaseException as error:
            self._give_back()
            raise self._named_at_the_deadline(_explained(error)) from error
        self._host.held.ends(self.targets, keeping_state=options.mode == "Stop")
        return Committed(
            options=options,
            targets=tuple(target.commit(self._request.drain_id) for target in planned.targets),
            beside=planned.selection.beside,
            executors=executors,
            left_alone=planned.selection.left_alone,
        )

    def _read_on(self, *, called_back: bool) -> None:
        """Let the others read on while the application restarts one; what a callback was told stands still stays so, or the drain ends."""
        if called_back:
            message = f"the application stopped {self._starts.restless()} again and again while it was being drained; the queries run on"
            raise DrainEndedError(DrainState.FAILED, reasons.QUERY_FAILED, message)
        self._thaw(self._targets)

    def _named_at_the_deadline(self, error: BaseException) -> BaseException:
        restless = self._starts.restless()
        if not restless or not isinstance(error, DrainEndedError) or error.reason != reasons.DEADLINE_EXCEEDED:
            return error
        return error.adding(f"the application stopped {restless} again and again, and started it anew. Let it run for longer, or stop it")

    def _look_again_at_queries(self, options: DrainOptions) -> None:
        """Refuse what has failed, or was started out of the agent's sight, while the others were frozen."""
        self._check_running()
        if options.queries is None:
            with suppress(StartsInFlightError):  # the gate knows of these
                check_all_seen(self._host)

    def _check_running(self) -> None:
        for target in self._targets:
            try:
                with _named(target):
                    target.check_running()
            except QueryEndedError as error:
                raise _explained(error) from error  # another query may be the one that is waited for

    def _wait_for_the_end(self) -> NoReturn:
        """Give the queries back until the application has ended, which may be later than it seems."""
        self._give_back()
        LOG.warning("drain %s: %s", self._request.drain_id, _LEAVING)
        self._reporter.change(message=_LEAVING)
        while True:
            self._pause()

    def _check_replaceable(self, options: DrainOptions) -> None:
        """Go on without a query that the application stops meanwhile, unless it was asked for by name."""
        stopped = [target.label for target in self._targets if target.stopped]
        if options.queries is not None and stopped:
            raise DrainEndedError(
                DrainState.FAILED,
                reasons.QUERY_FAILED,
                f"the application stopped {', '.join(stopped)} while it was being drained; the other queries run on",
            )

    def _freeze(self, planned: _Planned, *, thaw: bool) -> bool:
        """Take the sources away and wait until nothing is in flight; False when the application has stopped a query meanwhile.

        Bounded queries run to their ends, and those in real-time mode end their batches, by themselves; until then the others read on.
        Where ``thaw`` allows it, those that were frozen before another bounded one was started get their sources back.
        """
        restless = self._starts.restless()
        reason, message = (reasons.QUERY_RESTARTING, _RESTARTING.format(restless)) if restless else ("", "")
        self._reporter.change(state=DrainState.STOPPING, reason=reason, message=message, queries=planned.reports)
        first = [target for target in planned.targets if not target.dependent]  # the others read on until those are drained
        self._thaw([target for target in planned.targets if target.dependent])
        bounded = [item for item in first if item.bounded]
        if thaw and under_way(bounded):
            self._thaw(item for item in first if item not in bounded)
        real_time = [item for item in first if item.real_time and item not in bounded]
        try:
            for together in (bounded, real_time, [item for item in first if item not in (*bounded, *real_time)]):
                for target in together:
                    with _named(target):
                        target.freeze(self._keep_waiting)
                self._wait_until_settled(planned, together)
        except QueryEndedError:
            if not any(target.stopped for target in planned.targets):
                raise
            return False
        for target in planned.targets:
            self._keep_waiting()
            target.check_checkpoint()
        return not any(target.stopped for target in planned.targets)

    def _wait_until_settled(self, planned: _Planned, first: list[UncommittedQuery]) -> None:
        """Let what runs come to its end; a batch that outlives the deadline is left alone, and named."""
        running = Running(self._reporter, first, planned.reports)

        def keep_waiting() -> None:
            self._keep_waiting()
            self._check_running()
            running.tell()

        try:
            for target in first:
                with _named(target):
                    target.wait_until_settled(keep_waiting)
        except DrainEndedError as ended:
            left = under_way(first)
            if ended.reason != reasons.DEADLINE_EXCEEDED or not left:
                raise
            raise ended.adding(f"still running: {left}. Allow longer than that takes", reasons.BATCH_STILL_RUNNING) from ended

    def _for_callbacks(self, planned: _Planned) -> DrainContext:
        return DrainContext(
            drain_id=self._request.drain_id, run_id=self._host.identity.run_id, mode=self._request.mode, queries=planned.reports
        )

    def _give_back(self) -> None:
        """Let every query read on, and let the next report say so."""
        self._thaw(self._targets)
        given_up, self._targets = self._targets, ()
        self._host.gate.turn(Phase.OPEN)
        if not given_up:
            return
        with suppress(*JavaError):  # a JVM that dies right now
            running = {tracked.key for tracked in self._host.registry.all() if tracked.standing() is Standing.RUNS}
            self._reporter.prepare(queries=tuple(target.report_given_up(running) for target in given_up))

    def _thaw(self, targets: Iterable[UncommittedQuery]) -> None:
        for target in targets:
            try:
                target.thaw()
            except JavaError as error:
                LOG.warning("drain %s: %s could not be given its sources back: %s", self._request.drain_id, target.label, error)


@contextmanager
def _named(target: UncommittedQuery) -> Iterator[None]:
    """Say which query it is that ends in the block."""
    try:
        yield
    except QueryEndedError as error:
        raise QueryEndedError(f"{target.label} ended while it was being drained: {in_words(error)}") from error


def _wait_or_stopped(target: UncommittedQuery, catch_up: CatchUp) -> None:
    try:
        with _named(target):
            catch_up.wait()
    except QueryEndedError:
        if not target.stopped:
            raise
    except DrainEndedError as ended:
        if ended.reason != reasons.DEADLINE_EXCEEDED:
            raise
        raise ended.adding(f"still reading on: {target.label}") from ended


def _explained(error: BaseException) -> BaseException:
    if isinstance(error, QueryEndedError):
        return DrainEndedError(DrainState.FAILED, reasons.QUERY_FAILED, str(error))
    if isinstance(error, PlanRejectedError):
        return DrainEndedError(DrainState.REJECTED, error.reason, str(error))
    if isinstance(error, UnknownCheckpointFormatError):
        return DrainEndedError(DrainState.REJECTED, reasons.UNSUPPORTED_QUERY, str(error))
    if isinstance(error, CallbackError):
        return DrainEndedError(DrainState.FAILED, reasons.CALLBACK_FAILED, f"{error}; the queries run on")
    if isinstance(error, (*JavaError, OSError, UnsupportedSparkError)):
        return DrainEndedError(DrainState.FAILED, reasons.INTERNAL_ERROR, f"the queries run on: {in_words(error)}")
    return error
