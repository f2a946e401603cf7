"""What the phases of one drain share: the request as it now is, the report, the queries, the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol

from spark_drain_store import Channel, DrainNotification, DrainOptions, DrainState, QueryReport

from spark_drain_agent import callbacks, reasons
from spark_drain_agent.decide import Decision
from spark_drain_agent.hold import Gate
from spark_drain_agent.identity import Identity
from spark_drain_agent.queries import QueryRegistry, TrackedQuery
from spark_drain_agent.query_drain import QueryDrain
from spark_drain_agent.reporter import Reporter
from spark_drain_agent.spark_internals import SparkInternals

__all__ = ["POLL_SECONDS", "DrainEndedError", "DrainHost", "OngoingDrain", "SparkStoppedError"]

POLL_SECONDS = 0.1


class DrainHost(Protocol):
    """What a drain needs of the agent around it."""

    internals: SparkInternals
    channel: Channel
    identity: Identity
    gate: Gate
    registry: QueryRegistry
    start_lock: threading.Lock


class DrainEndedError(Exception):
    """The drain ends without being complete.

    Parameters
    ----------
    state
        The report's last state.
    reason
        From `reasons`.
    message
        For people.
    withdrawal
        The report's answer to a withdrawal, or "".
    """

    def __init__(self, state: DrainState, reason: str, message: str, withdrawal: str = "") -> None:
        super().__init__(message)
        self.state, self.reason, self.withdrawal = state, reason, withdrawal


class SparkStoppedError(Exception):
    """The SparkContext was stopped before the point of no return: the drain is left to the application's next one."""


class OngoingDrain:
    """One drain in this run.

    Parameters
    ----------
    host
        The agent.
    decision
        The notification, and the report of an earlier run.
    """

    def __init__(self, host: DrainHost, decision: Decision) -> None:
        self.host = host
        self.notification: DrainNotification = decision.notification
        self.inherited = decision.report
        self.gone = threading.Event()
        self.beyond_return = False
        self.reporter = Reporter(host.channel, host.identity, decision.notification.uuid, decision.report)
        self.options = DrainOptions()
        self.targets: list[QueryDrain] = []
        self.executors: dict[str, str] = {}
        self.timings: dict[str, float] = {}
        self.keeps_queries: tuple[QueryReport, ...] = ()
        self.stopped_before: tuple[str, ...] = ()
        self.beside: list[TrackedQuery] = []
        self.missing: set[str] = set()
        self.stalled: dict[str, tuple[str, str]] = {}

    @property
    def uuid(self) -> str:
        """The notification's uuid."""
        return self.notification.uuid

    def keep_waiting(self) -> None:
        """Give up a drain that is not yet beyond return.

        Raises
        ------
        DrainEndedError
            It is no longer wanted. Who withdraws it for its deadline learns of the deadline.
        SparkStoppedError
            Nothing is left in this SparkContext that could be drained.
        """
        withdrawn, deadline = self.gone.is_set() or self.notification.withdrawn, self.notification.deadline
        if deadline is not None and datetime.now(UTC) >= deadline:
            raise DrainEndedError(
                DrainState.FAILED,
                reasons.DEADLINE_EXCEEDED,
                f"the deadline {deadline.isoformat()} passed before the point of no return: the queries run on",
                withdrawal="Withdrawn" if withdrawn else "",
            )
        if withdrawn:
            raise DrainEndedError(
                DrainState.WITHDRAWN,
                reasons.WITHDRAWN,
                "withdrawn before the point of no return: the queries run on",
                withdrawal="Withdrawn",
            )
        if self.host.internals.stopped:
            raise SparkStoppedError

    def query_reports(self) -> tuple[QueryReport, ...]:
        """Return the queries as they are now; those that an earlier run finished are kept."""
        mine = {target.report.checkpoint_location: target.report for target in self.targets}
        return tuple(({query.checkpoint_location: query for query in self.keeps_queries} | mine).values())

    def for_callbacks(self) -> callbacks.DrainContext:
        """Return what the application's callbacks are told."""
        return callbacks.DrainContext(
            uuid=self.uuid, run_id=self.host.identity.run_id, mode=self.notification.mode, queries=self.query_reports()
        )

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds of this block to the report's timings."""
        begun = time.monotonic()
        yield
        self.timings = {**self.timings, name: round(self.timings.get(name, 0.0) + time.monotonic() - begun, 3)}
