"""The phase, and the conditions that are derived from everything else."""

from __future__ import annotations

from spark_drain_store import DrainReport, DrainState

from spark_drain_operator.engine.status import BasePhase, Ending
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.kinds.drain.status import DrainStatus

__all__ = ["mark_pending", "phase_of", "settle"]

_BY_STATE = {
    DrainState.REQUESTED: Phase.PENDING,
    DrainState.ACKNOWLEDGED: Phase.ACKNOWLEDGED,
    DrainState.STOPPING: Phase.STOPPING,
    DrainState.COMMITTING: Phase.FLUSHING,
    DrainState.FLUSHING: Phase.FLUSHING,
    DrainState.STALLED: Phase.FLUSHING,
    DrainState.REPORTING: Phase.REPORTING,
    DrainState.DRAINED: Phase.REPORTING,
}
_PENDING = {
    ConditionType.ACKNOWLEDGED: "no request has been written yet",
    ConditionType.SOURCES_STOPPED: "the sources have not been stopped yet",
    ConditionType.FLUSHED: "not begun",
    ConditionType.EXECUTORS_DRAINED: "not begun",
    ConditionType.SCALED_DOWN: "not begun",
}


def phase_of(spec: DrainSpec, status: DrainStatus, report: DrainReport | None) -> BasePhase:
    """Return the phase of an active drain."""
    if status.scale_down_time is not None or status.conditions.is_true(ConditionType.EXECUTORS_DRAINED):
        return Phase.SCALING_DOWN
    if report is None and status.answered:
        return status.phase  # it can no longer be read
    if report is None or not status.conditions.is_true(ConditionType.ACKNOWLEDGED):
        return Phase.PENDING
    if spec.awaits_approval and report.awaits_approval:
        return Phase.AWAITING_APPROVAL
    return _BY_STATE.get(report.state, status.phase)


def mark_pending(status: DrainStatus, message: str) -> None:
    """Let each condition exist from the first visit on."""
    if status.conditions.get(ConditionType.ACCEPTED) is None:
        status.set(ConditionType.ACCEPTED, "Unknown", Reason.NOT_YET, message)
    for type_, text in _PENDING.items():
        if status.conditions.get(type_) is None:
            status.set(type_, "Unknown", Reason.NOT_YET, text)


def settle(status: DrainStatus, ending: Ending) -> None:
    """Make the condition Accepted final."""
    phase = ending.phase
    if phase in (Phase.REJECTED, Phase.NOTHING_TO_DRAIN, Phase.EXPIRED) or status.conditions.get(ConditionType.ACCEPTED) is None:
        status.set(ConditionType.ACCEPTED, "True" if phase.successful else "False", str(ending.reason), ending.message)
