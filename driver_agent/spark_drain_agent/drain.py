"""One drain from the first look at its notification to the moment the driver may go: fresh, or inherited from an earlier run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from spark_drain_store import Channel, DrainNotification, DrainOptions, DrainState, QueryReport, StoreError, UnsupportedOptionError

from spark_drain_agent import reasons
from spark_drain_agent.bypass import as_agent
from spark_drain_agent.checkpoint import UnknownCheckpointFormatError
from spark_drain_agent.decide import Assignment, Decision
from spark_drain_agent.executors import collect_executor_reports
from spark_drain_agent.hold import Gate, Phase
from spark_drain_agent.identity import Identity
from spark_drain_agent.plan import PlanRejectedError, check_options
from spark_drain_agent.queries import QueryRegistry, TrackedQuery
from spark_drain_agent.query_drain import QueryDrain, RecoveryNeedsPreviousVersionError
from spark_drain_agent.reporter import Reporter
from spark_drain_agent.spark_internals import JavaError, SparkInternals, UnsupportedSparkError
from spark_drain_agent.steps.flush import FlushError
from spark_drain_agent.steps.freeze import QueryEndedError
from spark_drain_agent.trace import LOG, reached

__all__ = ["Drain", "DrainHost"]

_QUIET_SECONDS = 3.0
_POLL_SECONDS = 0.1
_STORE_PATIENCE_SECONDS = 60.0
_TRIES_BEFORE_STALLED = 3
_RETRY_SECONDS = (1.0, 3.0, 10.0, 30.0)


class DrainHost(Protocol):
    """What a drain needs of the agent around it."""

    internals: SparkInternals
    channel: Channel
    identity: Identity
    gate: Gate
    registry: QueryRegistry
    start_lock: threading.Lock


class _EndedError(Exception):
    """The drain ends before the point of no return; everything is put back."""

    def __init__(self, state: DrainState, reason: str, message: str, withdrawal: str = "") -> None:
        super().__init__(message)
        self.state, self.reason, self.withdrawal = state, reason, withdrawal


class _StoreAwayError(Exception):
    """The store cannot be read, so nobody knows whether the drain is still wanted."""


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
        self._notification = decision.notification
        self._gone = threading.Event()
        self.forward = decision.assignment is Assignment.FORWARD
        self._inherited = decision.report
        self._reporter = Reporter(host.channel, host.identity, decision.notification.uuid, decision.report)
        self._offered: list[TrackedQuery] = []
        self._targets: list[QueryDrain] = []
        self._beyond_return = self.forward
        self._options = DrainOptions()
        self._executors: dict[str, str] = {}
        self._timings: dict[str, float] = {}

    @property
    def uuid(self) -> str:
        """The notification's uuid."""
        return self._notification.uuid

    def owns(self, query_id: str) -> bool:
        """Return whether a running query belongs to this drain."""
        return any(target.query_id == query_id for target in self._targets)

    def update(self, notification: DrainNotification | None) -> None:
        """Take note of the notification's present contents; None when it was removed."""
        if notification is None:
            self._gone.set()
            return
        self._notification = notification
        if notification.withdrawn and self._beyond_return and not self._reporter.report.withdrawal:
            self._reporter.change(withdrawal="TooLate", message="withdrawn after the point of no return: the drain goes on to its end")

    def offer(self, tracked: TrackedQuery) -> None:
        """Take a query that was kept from starting, to finish its checkpoint."""
        self._offered.append(tracked)

    def run(self) -> None:
        """Drain; returns when the driver may go on or go."""
        with as_agent():
            try:
                if self.forward:
                    self._options = self._parsed()
                    self._finish_offered()
                else:
                    self._fresh()
                self._report_executors()
                self._reporter.change_surely(time.sleep, state=DrainState.DRAINED, reason="Drained", message=self._summary())
                reached("drained")
                LOG.info("drain %s: drained; the driver stays until the notification is removed", self.uuid)
                self._gone.wait()
                LOG.info("drain %s: the notification is gone; the driver may go", self.uuid)
            except _EndedError as ended:
                self._reporter.change_surely(
                    self._wait_unless_gone, state=ended.state, reason=ended.reason, message=str(ended), withdrawal=ended.withdrawal
                )
                LOG.info("drain %s: %s (%s): %s", self.uuid, ended.state, ended.reason, ended)
            finally:
                self._host.gate.turn(Phase.OPEN)

    # -- before the point of no return ---------------------------------------------------------------------------------------------

    def _parsed(self) -> DrainOptions:
        try:
            return self._notification.parsed_options()
        except UnsupportedOptionError as error:
            raise _EndedError(DrainState.REJECTED, reasons.UNSUPPORTED_OPTION, str(error)) from error

    def _fresh(self) -> None:
        self._reporter.change(state=DrainState.ACKNOWLEDGED, reason="", message="")
        self._options = self._parsed()
        while True:
            try:
                with self._timed("plan"):
                    self._wait_until_in_place()
                    self._plan()
                self._wait_for_approval()
                self._go_or_no_go()
                break
            except _StoreAwayError:
                # The pipeline must not stand still because the API server does: read on, and try again when it is back.
                LOG.warning("drain %s: the metadata store is away; the queries read on until it is back", self.uuid)
                self._wait_for_store()
        with self._timed("flush"):
            for target in self._targets:
                self._finish(target)

    def _keep_waiting(self) -> None:
        """Raise when the drain is no longer wanted."""
        if self._gone.is_set() or self._notification.withdrawn:
            raise _EndedError(
                DrainState.WITHDRAWN,
                reasons.WITHDRAWN,
                "withdrawn before the point of no return: the queries run on",
                withdrawal="Withdrawn",
            )
        deadline = self._notification.deadline
        if deadline is not None and datetime.now(UTC) >= deadline:
            raise _EndedError(
                DrainState.FAILED,
                reasons.DEADLINE_EXCEEDED,
                f"the deadline {deadline.isoformat()} passed before the point of no return: the queries run on",
            )

    def _wait_unless_gone(self, seconds: float) -> None:
        if self._gone.wait(seconds):
            raise SystemExit

    def _wait_until_in_place(self) -> None:
        while not (self._host.gate.user_is_waiting or (self._host.registry.all() and self._host.gate.in_place(_QUIET_SECONDS))):
            self._keep_waiting()
            time.sleep(_POLL_SECONDS)

    def _plan(self) -> None:
        try:
            check_options(self._options)
            running = [item for item in self._host.registry.all() if item.query is not None and item.live.thread_alive]
            self._check_all_seen(running)
            self._targets = [QueryDrain(item, self._options, self.uuid) for item in self._selected(running)]
            for target in self._targets:
                target.plan()
        except (PlanRejectedError, UnsupportedSparkError, UnknownCheckpointFormatError) as error:
            reason = error.reason if isinstance(error, PlanRejectedError) else reasons.UNSUPPORTED_QUERY
            raise _EndedError(DrainState.REJECTED, reason, str(error)) from error
        except JavaError as error:
            raise _EndedError(DrainState.FAILED, reasons.INTERNAL_ERROR, f"planning failed: {error}") from error
        self._reporter.change(queries=self._query_reports())

    def _check_all_seen(self, running: list[TrackedQuery]) -> None:
        seen = {item.query.id for item in running if item.query is not None}
        unseen = [query for query in self._host.internals.session.streams.active if query.id not in seen]
        if unseen:
            names = ", ".join(str(query.name or query.id) for query in unseen)
            raise PlanRejectedError(
                reasons.UNSUPPORTED_QUERY,
                f"queries {names} were started before the agent was attached: run the application under `python -m spark_drain_agent`, "
                "or call attach(spark) before starting them",
            )

    def _selected(self, running: list[TrackedQuery]) -> list[TrackedQuery]:
        if self._options.queries is None:
            return running
        names = {item.captured.query_name for item in running}
        unknown = [name for name in self._options.queries if name not in names]
        if unknown:
            raise PlanRejectedError(
                reasons.UNKNOWN_QUERY, f"queries {', '.join(unknown)} are not running; running are {', '.join(sorted(names)) or 'none'}"
            )
        return [item for item in running if item.captured.query_name in self._options.queries]

    def _wait_for_approval(self) -> None:
        if self._options.execution == "PlanOnly":
            self._reporter.change(reason=reasons.PLANNED, message="planned; nothing was touched")
            while True:
                self._keep_waiting()
                time.sleep(_POLL_SECONDS)
        if self._options.execution == "AfterApproval" and not self._notification.approved:
            self._reporter.change(reason=reasons.AWAITING_APPROVAL, message="planned; waits for approval")
            while not self._notification.approved:
                self._keep_waiting()
                time.sleep(_POLL_SECONDS)

    def _go_or_no_go(self) -> None:
        """Freeze and check every query, look at the store once more, and only then say that there is no way back."""
        gate = self._host.gate
        with self._host.start_lock:
            gate.turn(Phase.DECIDING)
        try:
            with self._timed("freeze"):
                self._plan()  # queries may have come and gone while approval was awaited
                self._reporter.change(state=DrainState.STOPPING, reason="", message="", queries=self._query_reports())
                for target in self._targets:
                    target.freeze(self._keep_waiting)
                for target in self._targets:
                    target.wait_until_settled(self._keep_waiting)
                    target.check_checkpoint()
            reached("settled")
            self._look_again()
            self._executors = dict(self._host.internals.executors())
            self._beyond_return = True
        except BaseException as error:
            for target in self._targets:
                target.thaw()
            gate.turn(Phase.OPEN)
            if isinstance(error, QueryEndedError):
                raise _EndedError(DrainState.FAILED, reasons.QUERY_FAILED, f"a query ended while it was being drained: {error}") from error
            if isinstance(error, UnknownCheckpointFormatError):
                raise _EndedError(DrainState.REJECTED, reasons.UNSUPPORTED_QUERY, str(error)) from error
            if isinstance(error, (JavaError, OSError)):
                raise _EndedError(DrainState.FAILED, reasons.INTERNAL_ERROR, f"the queries run on: {error}") from error
            raise
        self._reporter.change_surely(
            time.sleep, state=DrainState.COMMITTING, message="beyond the point of no return", queries=self._query_reports()
        )
        gate.turn(Phase.HELD)
        reached("committing")

    def _look_again(self) -> None:
        give_up = time.monotonic() + _STORE_PATIENCE_SECONDS
        while True:
            try:
                text = self._host.channel.requests.read().entries.get(self.uuid)
                self.update(None if text is None else DrainNotification.from_json(self.uuid, text))
                self._keep_waiting()
                return
            except StoreError as error:
                if time.monotonic() > give_up:
                    raise _StoreAwayError from error
            except ValueError:
                self._keep_waiting()  # overwritten with something unreadable: the last readable notification counts
                return
            time.sleep(1)

    def _wait_for_store(self) -> None:
        while True:
            try:
                self._host.channel.requests.read()
                return
            except StoreError:
                time.sleep(1)

    # -- beyond it -----------------------------------------------------------------------------------------------------------------

    def _finish_offered(self) -> None:
        """Finish what an earlier run began: each query that the application tries to start is drained instead."""
        inherited = self._inherited
        if inherited is None or inherited.state is not DrainState.DRAINED:
            self._reporter.change(state=DrainState.FLUSHING, reason="", message="goes on in a new run of the driver")
        expected = {query.checkpoint_location for query in (inherited.queries if inherited else ()) if query.state != DrainState.DRAINED}
        done: set[str] = set()
        while not ((inherited is not None and expected <= done) or (self._host.gate.user_is_waiting and not self._offered)):
            if not self._offered:
                time.sleep(_POLL_SECONDS)
                continue
            tracked = self._offered.pop(0)
            if tracked.location is None:
                continue
            target = QueryDrain(tracked, self._options, self.uuid)
            self._targets.append(target)
            self._finish(target)
            done.add(tracked.location)
        self._executors = dict(self._host.internals.executors())

    def _finish(self, target: QueryDrain) -> None:
        """Bring one query to its end, however often that takes; a failing batch is shown, never skipped."""
        tries = 0
        while True:
            try:
                self._reporter.change(state=DrainState.FLUSHING, reason="", message="", queries=self._query_reports())
                target.finish()
                self._reporter.change(queries=self._query_reports())
                return
            except RecoveryNeedsPreviousVersionError as error:
                self._stalled(target, reasons.RECOVERY_NEEDS_PREVIOUS_VERSION, str(error))
            except FlushError as error:
                LOG.warning("drain %s: %s: %s", self.uuid, target.label, error)
                if tries >= _TRIES_BEFORE_STALLED:
                    self._stalled(target, reasons.FLUSH_FAILED, f"{target.label}: {error}; it is tried again, fix its cause")
            except (JavaError, OSError, PlanRejectedError, UnknownCheckpointFormatError) as error:
                LOG.warning("drain %s: %s: %s", self.uuid, target.label, error)
                if tries >= _TRIES_BEFORE_STALLED:
                    self._stalled(target, reasons.CHECKPOINT_UNWRITABLE, f"{target.label}: {error}; it is tried again, fix its cause")
            if self._gone.wait(_RETRY_SECONDS[min(tries, len(_RETRY_SECONDS) - 1)]) and tries >= _TRIES_BEFORE_STALLED:
                # Nobody waits for this drain any more: let the driver go, the next start finishes it from the journal.
                report = self._reporter.report
                raise _EndedError(DrainState.FAILED, report.reason, report.message)
            tries += 1

    def _stalled(self, target: QueryDrain, reason: str, message: str) -> None:
        target.report = replace(target.report, state=DrainState.STALLED, message=message)
        self._reporter.change(state=DrainState.STALLED, reason=reason, message=message, queries=self._query_reports())

    def _report_executors(self) -> None:
        with self._timed("executors"):
            self._reporter.change(state=DrainState.REPORTING, reason="", message="", queries=self._query_reports())
            reached("reporting")
            summary = collect_executor_reports(self._host.internals, self._executors)
        self._reporter.change(
            executors_expected=summary.expected,
            executors_drained=summary.drained,
            executor_exceptions=summary.exceptions,
            timings=self._timings,
        )

    def _query_reports(self) -> tuple[QueryReport, ...]:
        mine = {target.report.checkpoint_location: target.report for target in self._targets}
        earlier = self._reporter.report.queries if self.forward else ()
        merged = {query.checkpoint_location: query for query in earlier} | mine
        return tuple(merged.values())

    def _summary(self) -> str:
        count = len(self._query_reports())
        return f"{count} {'query' if count == 1 else 'queries'} drained" if self._options.mode != "Stop" else f"{count} stopped"

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self._timings = {**self._timings, name: round(self._timings.get(name, 0.0) + time.monotonic() - begun, 3)}
