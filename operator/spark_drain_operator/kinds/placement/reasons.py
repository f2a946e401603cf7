"""Every phase, condition, reason and message of an ExecutorPlacement, in one place."""

from __future__ import annotations

from enum import StrEnum

from spark_drain_operator.engine import conditions
from spark_drain_operator.engine.status import BasePhase
from spark_drain_operator.kinds import references

__all__ = ["ConditionType", "Phase", "Reason", "message_of"]


class Phase(BasePhase):
    """One word for people; the terminal ones are also reasons of the condition Finished."""

    PENDING = "Pending"
    QUEUED = "Queued"
    MOVING = "Moving"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    REJECTED = "Rejected"

    @property
    def terminal(self) -> bool:
        """Whether the placement has ended."""
        return self not in (Phase.PENDING, Phase.QUEUED, Phase.MOVING)

    @property
    def successful(self) -> bool:
        """Whether the placement has ended as it was asked to."""
        return self is Phase.SUCCEEDED


class ConditionType(StrEnum):
    """Conditions in the order in which they become true."""

    ACCEPTED = conditions.ACCEPTED
    ACKNOWLEDGED = "Acknowledged"
    SUCCEEDED = conditions.SUCCEEDED
    FINISHED = conditions.FINISHED
    RECONCILING = conditions.RECONCILING
    STALLED = conditions.STALLED


class Reason(StrEnum):
    """Reasons of conditions that are not phases."""

    # Accepted
    ACCEPTED = "Accepted"
    APPLICATION_NOT_FOUND = "ApplicationNotFound"
    APPLICATION_NOT_RUNNING = "ApplicationNotRunning"
    UNSUPPORTED_APPLICATION = "UnsupportedApplication"
    EXECUTOR_NOT_FOUND = "ExecutorNotFound"
    STALE_RUN_ID = "StaleRunId"
    BAD_REQUEST = "BadRequest"
    INVALID_SPEC = conditions.INVALID_SPEC
    RESTORED = conditions.RESTORED
    CONFIG_MAPS_OF_ANOTHER = "ConfigMapsOfAnother"
    WAITING_FOR_OTHERS = "WaitingForOthers"
    # Acknowledged
    NOT_YET = conditions.NOT_YET
    IN_PROGRESS = conditions.IN_PROGRESS
    WAITING_FOR_AGENT = "WaitingForAgent"
    AGENT_ANSWERED = "AgentAnswered"
    # endings
    NOT_REPLACED = "NotReplaced"
    DECOMMISSIONED = "Decommissioned"
    AGENT_NOT_RESPONDING = "AgentNotResponding"
    RUN_ENDED = "RunEnded"
    REQUEST_REMOVED = "RequestRemoved"
    CANCEL_REQUESTED = "CancelRequested"
    DELETED = "Deleted"
    # Stalled
    APPLICATION_UNREADABLE = "ApplicationUnreadable"
    MALFORMED_RESPONSE = "MalformedResponse"
    RECONCILE_FAILED = conditions.RECONCILE_FAILED
    NOT_STALLED = conditions.NOT_STALLED


_MESSAGES: dict[str, str] = {
    Reason.ACCEPTED: "executor {executor} of run {run} is to be replaced; the agent checks the request next",
    Reason.APPLICATION_NOT_FOUND: references.APPLICATION_NOT_FOUND,
    Reason.APPLICATION_NOT_RUNNING: (
        "{kind} {name!r} has no running driver (state {state}), so it has no executors; create another ExecutorPlacement when it runs"
    ),
    Reason.EXECUTOR_NOT_FOUND: "run {run} has no running executor pod {pod!r}: there are {pods}",
    Reason.STALE_RUN_ID: (
        "spec.runId is {wanted!r}, but the application's run is {found!r}; create an ExecutorPlacement for that run, or without runId"
    ),
    Reason.CONFIG_MAPS_OF_ANOTHER: references.CONFIG_MAPS_OF_ANOTHER,
    Reason.WAITING_FOR_OTHERS: "{count} placements of the application are with its agent, and no more are given to it at a time",
    Reason.WAITING_FOR_AGENT: "waiting for the agent of run {run} to respond, until {until}",
    Reason.AGENT_ANSWERED: "the agent of run {run} has responded",
    Reason.AGENT_NOT_RESPONDING: (
        "no agent responded within {seconds} s, and the request is taken back. Is spark_drain_agent part of the driver's command, and "
        "may its service account read and write the ConfigMaps {requests} and {reports}?{detail}"
    ),
    Reason.RUN_ENDED: "run {run} has ended, and its executors with it (application state {state})",
    Reason.REQUEST_REMOVED: "the request was removed from ConfigMap {requests}: the agent leaves the executor alone where it still can",
    Reason.CANCEL_REQUESTED: "spec.cancel was set",
    Reason.DELETED: "the ExecutorPlacement was deleted",
    Reason.APPLICATION_UNREADABLE: references.APPLICATION_UNREADABLE,
}


def message_of(reason: Reason, **fields: object) -> str:
    """Return the message that belongs to a reason."""
    return _MESSAGES[reason].format(**fields)
