"""Every phase, condition, reason and message of the API, in one place."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ConditionType", "Phase", "Reason", "message_of"]


class Phase(StrEnum):
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

    ACCEPTED = "Accepted"
    ACKNOWLEDGED = "Acknowledged"
    SOURCES_STOPPED = "SourcesStopped"
    FLUSHED = "Flushed"
    EXECUTORS_DRAINED = "ExecutorsDrained"
    SCALED_DOWN = "ScaledDown"
    SUCCEEDED = "Succeeded"
    FINISHED = "Finished"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


class Reason(StrEnum):
    """Reasons of conditions that are not phases. Reasons that the agent chooses are passed on as they are."""

    # Accepted
    ACCEPTED = "Accepted"
    APPLICATION_NOT_FOUND = "ApplicationNotFound"
    APPLICATION_NOT_RUNNING = "ApplicationNotRunning"
    UNSUPPORTED_APPLICATION = "UnsupportedApplication"
    INVALID_SPEC = "InvalidSpec"
    DELETE_NOT_ALLOWED = "DeleteNotAllowed"
    STALE_RUN_ID = "StaleRunId"
    DRAIN_ALREADY_ACTIVE = "DrainAlreadyActive"
    WAITING_FOR_DRIVER = "WaitingForDriver"
    WAITING_FOR_PLAN = "WaitingForPlan"
    # Acknowledged
    AGENT_ANSWERED = "AgentAnswered"
    WAITING_FOR_AGENT = "WaitingForAgent"
    AGENT_NOT_RESPONDING = "AgentNotResponding"
    # progress
    IN_PROGRESS = "InProgress"
    NOT_YET = "NotYet"
    COMPLETED = "Completed"
    EXECUTORS_UNACCOUNTED = "ExecutorsUnaccounted"
    DRIVER_UNCONFIRMED = "DriverUnconfirmed"
    NOT_REQUESTED = "NotRequested"
    SCALE_DOWN_REQUESTED = "ScaleDownRequested"
    WAITING_FOR_PODS = "WaitingForPods"
    APPLICATION_SUSPENDED = "ApplicationSuspended"
    APPLICATION_DELETED = "ApplicationDeleted"
    APPLICATION_ENDED = "ApplicationEnded"
    SUSPEND_NOT_STORED = "SuspendNotStored"
    # endings
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    BATCH_STILL_RUNNING = "BatchStillRunning"
    CANCEL_REQUESTED = "CancelRequested"
    DELETED = "Deleted"
    NOTIFICATION_REMOVED = "NotificationRemoved"
    WITHDRAWN = "Withdrawn"
    APPLICATION_GONE = "ApplicationGone"
    EXPIRED = "Expired"
    # Stalled
    FLUSH_STALLED = "FlushStalled"
    MALFORMED_REPORT = "MalformedReport"
    RESULT_NAME_TAKEN = "ResultNameTaken"
    WITHDRAWAL_TOO_LATE = "WithdrawalTooLate"
    NOT_STALLED = "NotStalled"


_MESSAGES: dict[str, str] = {
    Reason.ACCEPTED: "the drain is possible as far as the operator can see; the agent checks the queries",
    Reason.APPLICATION_NOT_FOUND: "there is no {kind} {name!r} in namespace {namespace!r}",
    Reason.APPLICATION_NOT_RUNNING: "{kind} {name!r} is not running (state {state}) and spec.ifNotRunning is Reject",
    Reason.UNSUPPORTED_APPLICATION: (
        "applicationRef {apiVersion}/{kind} is not supported yet; supported: {supported}. The agent of another kind of application can be "
        "asked directly: python -m spark_drain_store drain write"
    ),
    Reason.DELETE_NOT_ALLOWED: (
        "spec.afterDrain is Delete, which this operator does not allow; use Suspend, or install the operator with --allow-delete"
    ),
    Reason.STALE_RUN_ID: (
        "spec.runId is {wanted!r}, but the application's run is {found!r}; create a PipelineDrain for that run, or without runId"
    ),
    Reason.DRAIN_ALREADY_ACTIVE: "{other} is draining this application; wait for its end, or cancel it, then create this one again",
    Reason.WAITING_FOR_DRIVER: "waiting for a running driver of {kind} {name!r} (state {state})",
    Reason.WAITING_FOR_PLAN: "waiting for {other}, which plans a drain of the same application",
    Reason.AGENT_ANSWERED: "the agent of run {run} has answered",
    Reason.WAITING_FOR_AGENT: "asked the agent of run {run} (driver pod {pod}); it has until {until} to answer",
    Reason.AGENT_NOT_RESPONDING: (
        "no agent answered within {seconds} s; the application was not touched. Is spark_drain_agent part of the driver's command, and may "
        "its service account read and write the ConfigMaps {requests} and {reports}?{detail}"
    ),
    Reason.DRIVER_UNCONFIRMED: "the final report does not come from the live driver: {detail}",
    Reason.EXECUTORS_UNACCOUNTED: "running executors that are not in the agent's report: {executors}",
    Reason.NOT_REQUESTED: "spec.afterDrain is Keep",
    Reason.SCALE_DOWN_REQUESTED: "asked for the application to be scaled down",
    Reason.WAITING_FOR_PODS: "waiting for {count} pods of the application to end: {pods}",
    Reason.APPLICATION_SUSPENDED: "the application is suspended and none of its pods runs",
    Reason.APPLICATION_DELETED: "the application is deleted and none of its pods is left",
    Reason.APPLICATION_ENDED: (
        "the driver is gone (application state {state}) before the drain was complete; its journal is settled at its next start"
    ),
    Reason.SUSPEND_NOT_STORED: (
        "the API server dropped spec.suspend of the application: its CustomResourceDefinition is too old; apply that of the installed "
        "operator"
    ),
    Reason.DEADLINE_EXCEEDED: "not done within timeoutSeconds ({seconds} s); {state}",
    Reason.CANCEL_REQUESTED: "spec.cancel was set",
    Reason.DELETED: "the PipelineDrain was deleted",
    Reason.NOTIFICATION_REMOVED: "the drain notification was removed from ConfigMap {requests} by somebody else",
    Reason.WITHDRAWN: "the drain was withdrawn in the metadata store by somebody else",
    Reason.APPLICATION_GONE: "{kind} {name!r} has been deleted, or replaced by another of the same name",
    Reason.EXPIRED: "the drain had not begun by spec.expirationTime ({time})",
    Reason.RESULT_NAME_TAKEN: "ConfigMap {name} exists and is not this drain's; delete or rename it, it is where the result goes",
    Reason.WITHDRAWAL_TOO_LATE: "the flush has begun, the drain runs to its end",
    Reason.NOT_STALLED: "",
}


def message_of(reason: Reason, **fields: object) -> str:
    """Return the message that belongs to a reason."""
    return _MESSAGES[reason].format(**fields)
