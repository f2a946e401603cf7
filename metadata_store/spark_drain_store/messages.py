"""Drain notification and drain report, and their JSON.

Readers ignore fields they do not know, so that either side may be newer; a value that cannot be read is a `MalformedMessageError`
that the reader reports and survives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from spark_drain_store import reasons
from spark_drain_store.codec import KEY, MalformedMessageError, Reader, render
from spark_drain_store.options import DrainOptions

__all__ = [
    "MESSAGE_VERSION",
    "MOST_EXECUTOR_EXCEPTIONS",
    "DrainNotification",
    "DrainReport",
    "DrainState",
    "ExecutorException",
    "ExecutorState",
    "MalformedMessageError",
    "OperatorReport",
    "QueryReport",
    "WithdrawalAnswer",
]

MESSAGE_VERSION = 1

_DRAIN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,62}")
_TAKEN = frozenset({"journal", "lease", "lease-heartbeat", "empty-store"})
"""Names in a checkpoint's folder for drains that are no drain's."""

MOST_EXECUTOR_EXCEPTIONS = 50
"""How many exceptions a report lists at most; with as many, there may be more."""


class ExecutorState(StrEnum):
    """Why an executor did not simply report drained."""

    GONE = "Gone"
    """It left the application before it could report."""
    IDLE = "Idle"
    """It never took a task."""
    SILENT = "Silent"
    """It is registered, but its report task did not run there."""


class WithdrawalAnswer(StrEnum):
    """What the agent answers to a withdrawal."""

    WITHDRAWN = "Withdrawn"
    """The drain is undone, the queries run on."""
    TOO_LATE = "TooLate"
    """The point of no return has been passed: the drain goes on to its end."""


class DrainState(StrEnum):
    """How far a drain is. ``REQUESTED`` is never written: it is a notification without a report."""

    REQUESTED = "Requested"
    ACKNOWLEDGED = "Acknowledged"
    STOPPING = "Stopping"
    COMMITTING = "Committing"
    FLUSHING = "Flushing"
    REPORTING = "Reporting"
    DRAINED = "Drained"
    WITHDRAWN = "Withdrawn"
    FAILED = "Failed"
    STALLED = "Stalled"
    REJECTED = "Rejected"

    @property
    def finished(self) -> bool:
        """Whether the agent has nothing more to do for this drain (a stalled one goes on when its cause is gone)."""
        return self is DrainState.DRAINED or self.given_up

    @property
    def given_up(self) -> bool:
        """Whether the agent has ended the drain without draining: another one may begin."""
        return self in (DrainState.WITHDRAWN, DrainState.FAILED, DrainState.REJECTED)

    @property
    def forward_only(self) -> bool:
        """Whether the point of no return has been passed, or may have been: a stalled drain does not say."""
        return self.beyond_return or self is DrainState.STALLED

    @property
    def beyond_return(self) -> bool:
        """Whether the point of no return has been passed for certain."""
        return self in (DrainState.COMMITTING, DrainState.FLUSHING, DrainState.REPORTING, DrainState.DRAINED)


@dataclass(frozen=True, kw_only=True)
class DrainNotification:
    """A request to drain one run of an application (Samza's DrainNotification).

    Parameters
    ----------
    drain_id
        Identifier of the drain; also its key in the store.
    run_id
        ``spark.app.id`` of the run that is meant; None means the run that sees it first.
    attempt
        Counts how often the notification was bound to another run before anybody acknowledged it; from 1.
    mode, options
        See `DrainOptions.parse`.
    approved
        With execution ``AfterApproval``: the plan may be carried out.
    withdrawn
        The requester has changed its mind; answered by the report's ``withdrawal``.
    acknowledge_by, deadline
        UTC times after which the requester no longer wants an acknowledgement, or a point of no return; None is no limit.
    created_at
        UTC time of the request.
    pipeline_drain
        Name of the PipelineDrain it was written for, whose uid is the drain's identifier; "" where somebody else has written it.
    """

    drain_id: str = field(metadata={KEY: "uuid"})
    created_at: datetime
    run_id: str | None = None
    attempt: int = 1
    mode: str = "Drain"
    options: Mapping[str, str] = field(default_factory=dict)
    approved: bool = False
    withdrawn: bool = False
    acknowledge_by: datetime | None = None
    deadline: datetime | None = None
    pipeline_drain: str = ""

    def parsed_options(self) -> DrainOptions:
        """Return the options, checked (`UnsupportedOptionError` otherwise)."""
        return DrainOptions.parse(self.mode, self.options)

    def to_json(self) -> str:
        """Return the stored form."""
        return render(self, MESSAGE_VERSION)

    @classmethod
    def from_json(cls, key: str, text: str) -> DrainNotification:
        """Read the stored form of the entry ``key``.

        Raises
        ------
        MalformedMessageError
            The text is no JSON object, has another version, lacks a field, a field has another type, or the key cannot be a drain's id.
        """
        reader = Reader.over(f"drain notification {key!r}", text, MESSAGE_VERSION)
        if not _DRAIN_ID.fullmatch(key) or key in _TAKEN:
            raise MalformedMessageError(f"drain notification {key!r}: uuid {key!r} cannot be a drain's, which name folders: give it a UUID")
        return cls(
            drain_id=reader.matching("uuid", key),
            created_at=reader.time("createdAt"),
            run_id=reader.optional_text("runId"),
            attempt=reader.integer("attempt", 1),
            mode=reader.text("mode", "Drain"),
            options=reader.text_map("options"),
            approved=reader.flag("approved"),
            withdrawn=reader.flag("withdrawn"),
            acknowledge_by=reader.optional_time("acknowledgeBy"),
            deadline=reader.optional_time("deadline"),
            pipeline_drain=reader.text("pipelineDrain", ""),
        )


@dataclass(frozen=True, kw_only=True)
class OperatorReport:
    """One stateful operator of a query and what infinity does to it.

    Parameters
    ----------
    name
        Spark's name of the physical operator, such as ``stateStoreSave``.
    disposition
        ``flushed``, ``discarded``, ``forgotten`` or ``residual``.
    rows_before, rows_after
        Keys in state before and after the flush; None while unknown.
    """

    name: str
    disposition: str
    rows_before: int | None = None
    rows_after: int | None = None


@dataclass(frozen=True, kw_only=True)
class QueryReport:
    """One query's part of a drain.

    Parameters
    ----------
    id
        The streaming query's id before the drain (kept in its checkpoint).
    name
        The query's name, or "" where it has none.
    state
        A `DrainState` value; ``Running`` while the query is only planned, and once the drain is given up before its point of no
        return, where it is ``Failed`` or ``Ended`` if the query did not outlive it.
    checkpoint_location
        URI of the checkpoint folder.
    checkpoint_policy
        The resolved policy: ``Reseed``, ``Continue`` or ``Keep``; "" with mode Stop.
    sink
        Spark's description of the sink.
    depends_on
        Checkpoint folders of the drained queries whose sinks this query reads: it was drained after them.
    last_batch_id
        Newest committed batch that read data; None when none ever ran.
    flush_batch_id
        The batch that emitted the drain pane; None when nothing was flushed.
    end_offsets
        Source description to next offset to read (JSON as Spark writes it, usable as ``startingOffsets`` for Kafka).
    watermark_ms
        Event-time watermark before the flush, in milliseconds since the epoch.
    operators
        Stateful operators.
    warnings
        What the user should know, one sentence each.
    archive
        URI of the archived generation, or "".
    side_output, state_export
        URI of the folder with the query's incomplete windows, and of the one with its exported state; "" where there is none.
    fingerprint
        Digest of the version of the query that is drained: only that one may carry the drain out.
    message
        Why the state is what it is, for people.
    """

    id: str
    name: str = ""
    state: str = "Running"
    checkpoint_location: str = ""
    checkpoint_policy: str = ""
    sink: str = ""
    depends_on: tuple[str, ...] = ()
    last_batch_id: int | None = None
    flush_batch_id: int | None = None
    end_offsets: Mapping[str, str] = field(default_factory=dict)
    watermark_ms: int | None = None
    operators: tuple[OperatorReport, ...] = ()
    warnings: tuple[str, ...] = ()
    archive: str = ""
    side_output: str = ""
    state_export: str = ""
    fingerprint: str = ""
    message: str = ""

    @classmethod
    def read(cls, reader: Reader) -> QueryReport:
        """Read one element of a report's ``queries``."""
        return cls(
            id=reader.text("id"),
            name=reader.text("name", ""),
            state=reader.text("state", "Running"),
            checkpoint_location=reader.text("checkpointLocation", ""),
            checkpoint_policy=reader.text("checkpointPolicy", ""),
            sink=reader.text("sink", ""),
            depends_on=reader.text_list("dependsOn"),
            last_batch_id=reader.optional_integer("lastBatchId"),
            flush_batch_id=reader.optional_integer("flushBatchId"),
            end_offsets=reader.text_map("endOffsets"),
            watermark_ms=reader.optional_integer("watermarkMs"),
            operators=tuple(
                OperatorReport(
                    name=item.text("name"),
                    disposition=item.text("disposition"),
                    rows_before=item.optional_integer("rowsBefore"),
                    rows_after=item.optional_integer("rowsAfter"),
                )
                for item in reader.objects("operators")
            ),
            warnings=reader.text_list("warnings"),
            archive=reader.text("archive", ""),
            side_output=reader.text("sideOutput", ""),
            state_export=reader.text("stateExport", ""),
            fingerprint=reader.text("fingerprint", ""),
            message=reader.text("message", ""),
        )


@dataclass(frozen=True, kw_only=True)
class ExecutorException:
    """An executor that did not simply report drained.

    Parameters
    ----------
    id
        Spark's executor id.
    state
        One of `ExecutorState`; a newer agent may know more.
    detail
        For people.
    """

    id: str
    state: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class DrainReport:
    """The agent's answer to one notification; rewritten as a whole at each step.

    Parameters
    ----------
    drain_id
        The drain's id; also the key in the store.
    runs
        ``spark.app.id`` of each run that worked on this drain, oldest first. More than one after a driver restart.
    state, reason, message
        Where the drain is; ``reason`` is CamelCase and stable, ``message`` is for people.
    queries
        One element per query.
    executors_expected
        Executors registered at the last commit.
    executors_drained
        Ids that reported, in ranges: ``1-4711,4713-10000``.
    executor_exceptions
        At most 50 executors that did not report, with the reason.
    driver_pod_uid, driver_pod_name
        The pod in which the reporting agent runs; "" outside of Kubernetes.
    withdrawal
        "" or one of `WithdrawalAnswer`.
    timings
        Seconds spent per step.
    sequence
        Grows with each write; a reader that sees it fall looks at an older copy.
    agent_version, spark_version
        For support.
    updated_at
        UTC time of this write.
    drained_at
        UTC time at which the state became Drained first; a later run that repeats the report keeps it. None before.
    """

    drain_id: str = field(metadata={KEY: "uuid"})
    runs: tuple[str, ...]
    state: DrainState
    updated_at: datetime
    reason: str = ""
    message: str = ""
    queries: tuple[QueryReport, ...] = ()
    executors_expected: int = 0
    executors_drained: str = ""
    executor_exceptions: tuple[ExecutorException, ...] = ()
    driver_pod_uid: str = ""
    driver_pod_name: str = ""
    withdrawal: str = ""
    timings: Mapping[str, float] = field(default_factory=dict)
    sequence: int = 1
    agent_version: str = ""
    spark_version: str = ""
    drained_at: datetime | None = None

    @property
    def awaits_approval(self) -> bool:
        """Whether the plan is in ``queries``, for somebody to approve."""
        return self.state is DrainState.ACKNOWLEDGED and self.reason == reasons.AWAITING_APPROVAL

    def to_json(self) -> str:
        """Return the stored form."""
        return render(self, MESSAGE_VERSION)

    @classmethod
    def from_json(cls, key: str, text: str) -> DrainReport:
        """Read the stored form of the entry ``key``; raises `MalformedMessageError`."""
        reader = Reader.over(f"drain report {key!r}", text, MESSAGE_VERSION)
        return cls(
            drain_id=reader.matching("uuid", key),
            runs=reader.text_list("runs"),
            state=DrainState(reader.choice("state", tuple(DrainState))),
            updated_at=reader.time("updatedAt"),
            reason=reader.text("reason", ""),
            message=reader.text("message", ""),
            queries=tuple(QueryReport.read(item) for item in reader.objects("queries")),
            executors_expected=reader.integer("executorsExpected", 0),
            executors_drained=reader.text("executorsDrained", ""),
            executor_exceptions=tuple(
                ExecutorException(id=item.text("id"), state=item.text("state"), detail=item.text("detail", ""))
                for item in reader.objects("executorExceptions")
            ),
            driver_pod_uid=reader.text("driverPodUid", ""),
            driver_pod_name=reader.text("driverPodName", ""),
            withdrawal=reader.text("withdrawal", ""),
            timings=reader.number_map("timings"),
            sequence=reader.integer("sequence", 1),
            agent_version=reader.text("agentVersion", ""),
            spark_version=reader.text("sparkVersion", ""),
            drained_at=reader.optional_time("drainedAt"),
        )

    def as_object(self) -> dict[str, Any]:
        """Return the stored form as a JSON object."""
        loaded: dict[str, Any] = json.loads(self.to_json())
        return loaded
