"""Every phase, condition, reason and message of the API, in one place."""

from __future__ import annotations

from enum import StrEnum

from spark_drain_store import reasons as report_reasons

from spark_drain_operator.engine import conditions
from spark_drain_operator.engine.status import BasePhase
from spark_drain_operator.kinds import references

__all__ = [
    "ENDED_TOO_EARLY",
    "GAVE_UP_TOO_EARLY",
    "NOT_SCALED_DOWN",
    "SPEC_CHANGED_TOO_EARLY",
    "SPEC_PERHAPS_CHANGED",
    "SUPERSEDED_TOO_LATE",
    "ConditionType",
    "Phase",
    "Reason",
    "message_of",
]


class Phase(BasePhase):
    """One word for people; the terminal ones are also reasons of the condition Finished."""

    PENDING = "Pending"
    AWAITING_APPROVAL = "AwaitingApproval"
    ACKNOWLEDGED = "Acknowledged"
    STOPPING = "Stopping"
    FLUSHING = "Flushing"
    REPORTING = "Reporting"
    SCALING_DOWN = "ScalingDown"
    DRAINED = "Drained"
    NOTHING_TO_DRAIN = "NothingToDrain"
    PLANNED = "Planned"
    TIMED_OUT = "TimedOut"
    FORCE_STOPPED = "ForceStopped"
    CANCELLED = "Cancelled"
    FAILED = "Failed"
    ABANDONED = "Abandoned"
    REJECTED = "Rejected"
    EXPIRED = "Expired"

    @property
    def terminal(self) -> bool:
        """Whether the drain has ended."""
        return self in _TERMINAL

    @property
    def successful(self) -> bool:
        """Whether the drain has ended as it was asked to."""
        return self in (Phase.DRAINED, Phase.NOTHING_TO_DRAIN, Phase.PLANNED)


_TERMINAL = frozenset(list(Phase)[list(Phase).index(Phase.DRAINED) :])


class ConditionType(StrEnum):
    """Conditions in the order in which they become true."""

    ACCEPTED = conditions.ACCEPTED
    ACKNOWLEDGED = "Acknowledged"
    SOURCES_STOPPED = "SourcesStopped"
    FLUSHED = "Flushed"
    EXECUTORS_DRAINED = "ExecutorsDrained"
    SCALED_DOWN = "ScaledDown"
    SUCCEEDED = conditions.SUCCEEDED
    FINISHED = conditions.FINISHED
    RECONCILING = conditions.RECONCILING
    STALLED = conditions.STALLED


class Reason(StrEnum):
    """Reasons of conditions that are not phases. Reasons that the agent chooses are passed on as they are."""

    # Accepted
    ACCEPTED = "Accepted"
    APPLICATION_NOT_FOUND = "ApplicationNotFound"
    APPLICATION_NOT_RUNNING = "ApplicationNotRunning"
    UNSUPPORTED_APPLICATION = "UnsupportedApplication"
    INVALID_SPEC = conditions.INVALID_SPEC
    DELETE_NOT_ALLOWED = "DeleteNotAllowed"
    STALE_RUN_ID = "StaleRunId"
    DRAIN_INTERRUPTED = "DrainInterrupted"
    DRAIN_ALREADY_ACTIVE = "DrainAlreadyActive"
    WAITING_FOR_DRIVER = "WaitingForDriver"
    WAITING_FOR_PLAN = "WaitingForPlan"
    # Acknowledged
    AGENT_ANSWERED = "AgentAnswered"
    WAITING_FOR_AGENT = "WaitingForAgent"
    AGENT_NOT_RESPONDING = "AgentNotResponding"
    # progress
    IN_PROGRESS = conditions.IN_PROGRESS
    NOT_YET = conditions.NOT_YET
    COMPLETED = "Completed"
    EXECUTORS_UNACCOUNTED = "ExecutorsUnaccounted"
    DRIVER_UNCONFIRMED = "DriverUnconfirmed"
    NOT_REQUESTED = "NotRequested"
    SCALE_DOWN_REQUESTED = "ScaleDownRequested"
    SCALE_DOWN_INCOMPLETE = "ScaleDownIncomplete"
    WAITING_FOR_PODS = "WaitingForPods"
    APPLICATION_SUSPENDED = "ApplicationSuspended"
    APPLICATION_DELETED = "ApplicationDeleted"
    APPLICATION_RESTARTED = "ApplicationRestarted"
    APPLICATION_NOT_RESTARTED = "ApplicationNotRestarted"
    WAITING_FOR_REPORT = "WaitingForReport"
    SPEC_CHANGED = "SpecChanged"
    APPLICATION_RESUMED = "ApplicationResumed"
    APPLICATION_ENDED = "ApplicationEnded"
    SUSPEND_NOT_STORED = "SuspendNotStored"
    # endings
    DEADLINE_EXCEEDED = report_reasons.DEADLINE_EXCEEDED
    BATCH_STILL_RUNNING = report_reasons.BATCH_STILL_RUNNING
    CANCEL_REQUESTED = "CancelRequested"
    DELETED = "Deleted"
    CONFIG_MAPS_OF_ANOTHER = "ConfigMapsOfAnother"
    NOTIFICATION_REMOVED = "NotificationRemoved"
    NOTIFICATION_REMOVED_TOO_LATE = "NotificationRemovedTooLate"
    NO_ANSWER_TO_WITHDRAWAL = "NoAnswerToWithdrawal"
    WITHDRAWN = report_reasons.WITHDRAWN
    APPLICATION_GONE = "ApplicationGone"
    EXPIRED = "Expired"
    # Stalled
    FLUSH_STALLED = "FlushStalled"
    MALFORMED_REPORT = "MalformedReport"
    RESULT_NAME_TAKEN = "ResultNameTaken"
    RESULT_NOT_KEPT = "ResultNotKept"
    APPLICATION_UNREADABLE = "ApplicationUnreadable"
    RECONCILE_FAILED = conditions.RECONCILE_FAILED
    RESTORED = conditions.RESTORED
    WITHDRAWAL_TOO_LATE = "WithdrawalTooLate"
    NOT_STALLED = conditions.NOT_STALLED


_MESSAGES: dict[str, str] = {
    Reason.ACCEPTED: "the application can be drained; the agent checks its queries next",
    Reason.APPLICATION_NOT_FOUND: references.APPLICATION_NOT_FOUND,
    Reason.APPLICATION_NOT_RUNNING: "{kind} {name!r} is not running (state {state}) and spec.ifNotRunning is Reject",
    Reason.DELETE_NOT_ALLOWED: (
        "spec.afterDrain is Delete, which this operator does not allow; use Suspend, or install the operator with --allow-delete"
    ),
    Reason.STALE_RUN_ID: (
        "spec.runId is {wanted!r}, but the application's run is {found!r}; create a PipelineDrain for that run, or without runId"
    ),
    Reason.DRAIN_INTERRUPTED: (
        "there is no run to drain, but the last drain ({drain}) was interrupted past its point of no return (state {state}): start the "
        "same version again, which completes it. If its checkpoints are taken care of, remove that drain's report from ConfigMap {reports}"
    ),
    Reason.DRAIN_ALREADY_ACTIVE: "{other} is draining this application; wait until it ends, or cancel it, then create this one again",
    Reason.WAITING_FOR_DRIVER: "waiting for a running driver of {kind} {name!r} (state {state})",
    Reason.WAITING_FOR_PLAN: "waiting for {other}, which is planning a drain of the same application",
    Reason.AGENT_ANSWERED: "the agent of run {run} has responded",
    Reason.WAITING_FOR_AGENT: "waiting for the agent of run {run} (driver pod {pod}) to respond, until {until}",
    Reason.AGENT_NOT_RESPONDING: (
        "no agent responded within {seconds} s; the application was not touched. Is spark_drain_agent part of the driver's command, and "
        "may its service account read and write the ConfigMaps {requests} and {reports}?{detail}"
    ),
    Reason.DRIVER_UNCONFIRMED: "the final report does not come from the live driver: {detail}",
    Reason.EXECUTORS_UNACCOUNTED: "running executors that are not in the agent's report: {executors}",
    Reason.NOT_REQUESTED: "spec.afterDrain is Keep",
    Reason.SCALE_DOWN_REQUESTED: "requested scale-down of the application",
    Reason.SCALE_DOWN_INCOMPLETE: (
        "scale-down was requested at {time} and is not done: a finalizer holds the application, or something takes spec.suspend back"
    ),
    Reason.WAITING_FOR_PODS: "waiting for {count} pods of the application to terminate: {pods}",
    Reason.APPLICATION_SUSPENDED: "the application is suspended and none of its pods runs",
    Reason.APPLICATION_DELETED: "the application is deleted and none of its pods is left",
    Reason.APPLICATION_RESTARTED: "what was drained has ended, and the application is started again",
    Reason.APPLICATION_NOT_RESTARTED: "the application is not started again: {why}",
    Reason.WAITING_FOR_REPORT: (
        "drained; the driver was restarted, and the agent of run {run} (state {state}) has not repeated its final report yet: the "
        "application is scaled down when it has, or, without a result, when the PipelineDrain is deleted"
    ),
    Reason.SPEC_CHANGED: (
        "the application's spec is not the one that its driver was started with: if its own operator starts another driver, that one is "
        "left alone; if it keeps the driver for {seconds} s (state RUNNING), the application is suspended{late}"
    ),
    Reason.APPLICATION_RESUMED: "somebody has resumed or changed the application since; what runs now is left alone",
    Reason.APPLICATION_ENDED: (
        "the driver ended (application state {state}) before the drain was complete; start the same version again to complete it"
    ),
    Reason.SUSPEND_NOT_STORED: (
        "the API server dropped spec.suspend of the application: its CustomResourceDefinition is too old; apply that of the installed "
        "operator"
    ),
    Reason.DEADLINE_EXCEEDED: "not finished within timeoutSeconds ({seconds} s); {state}",
    Reason.CANCEL_REQUESTED: "spec.cancel was set",
    Reason.DELETED: "the PipelineDrain was deleted",
    Reason.CONFIG_MAPS_OF_ANOTHER: references.CONFIG_MAPS_OF_ANOTHER,
    Reason.NOTIFICATION_REMOVED: "the drain notification was removed from ConfigMap {requests}",
    Reason.NOTIFICATION_REMOVED_TOO_LATE: (
        "the drain notification was removed from ConfigMap {requests} when the agent was at {state}, past the point of no return: it "
        "carries the drain out, nothing holds the driver then, and the application is not scaled down. Create another PipelineDrain"
    ),
    Reason.NO_ANSWER_TO_WITHDRAWAL: (
        "the agent has not answered for {seconds} s and is no longer waited for; when it is back, it finds that the drain is not "
        "wanted: it undoes it, or, past the point of no return, carries it out and lets the application go on"
    ),
    Reason.APPLICATION_UNREADABLE: references.APPLICATION_UNREADABLE,
    Reason.WITHDRAWN: "the drain was withdrawn in the metadata store",
    Reason.APPLICATION_GONE: "{kind} {name!r} has been deleted, or replaced by another of the same name",
    Reason.EXPIRED: "the drain had not begun by {time} (spec.expirationTime or spec.expirationSeconds){waited}",
    Reason.RESULT_NAME_TAKEN: "ConfigMap {name}, where the result is kept, exists and does not belong to this drain; delete or rename it",
    Reason.RESULT_NOT_KEPT: "end offsets could not be kept in ConfigMap {name} ({error}): they are in the report in ConfigMap {reports}",
    Reason.WITHDRAWAL_TOO_LATE: "the flush has begun; the drain runs to completion",
    Reason.NOT_STALLED: "",
}


ENDED_TOO_EARLY = "the driver ended (application state {state}) before the point of no return: nothing was drained"
"""Message of the reason ApplicationEnded where there is nothing to complete."""

GAVE_UP_TOO_EARLY = (
    "{message}; the agent gave up at {gave_up} by its clock, and the deadline is {deadline} by the operator's: the clocks differ, or "
    "timeoutSeconds was changed too late for the agent; nothing was stopped by force"
)
"""Message of an agent's deadline that has not passed."""

NOT_SCALED_DOWN = "drained, but not scaled down: the PipelineDrain was deleted, and five minutes later the operator could still not do it"
"""Message of the reason ScaleDownIncomplete where it ends the drain."""

SPEC_CHANGED_TOO_EARLY = (
    "the application was changed before the point of no return: nothing is drained, and the next version is left alone; to drain that "
    "one, create another PipelineDrain"
)
"""Message of the reason SpecChanged where it ends the drain."""

SPEC_PERHAPS_CHANGED = (
    "the application was applied anew shortly before the drain, perhaps with nothing but another label: if its own operator starts another "
    "driver, that one is left alone; if it keeps the driver for {seconds} s (state RUNNING), the application is scaled down{late}"
)
"""Message of the reason SpecChanged where nobody knows the spec that the driver was started with."""

SUPERSEDED_TOO_LATE = "another run of the application has started"
"""Message of a drain that would have been given up for that."""


def message_of(reason: Reason, **fields: object) -> str:
    """Return the message that belongs to a reason."""
    return _MESSAGES[reason].format(**fields)
