"""The phase and kstatus' conditions, derived from everything else."""

from __future__ import annotations

from spark_drain_store import DrainReport, DrainState

from spark_drain_operator.models.reasons import ConditionType, Phase, Reason
from spark_drain_operator.models.spec import DrainSpec
from spark_drain_operator.models.status import DrainStatus

__all__ = ["mark_active", "phase_of"]

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
    ConditionType.SOURCES_STOPPED: "the agent has not begun to stop the sources",
    ConditionType.FLUSHED: "not begun",
    ConditionType.EXECUTORS_DRAINED: "not begun",
    ConditionType.SCALED_DOWN: "not begun",
}


def phase_of(spec: DrainSpec, status: DrainStatus, report: DrainReport | None) -> Phase:
    """Return the phase of an active drain."""
    if status.scale_down_time is not None or status.conditions.is_true(ConditionType.EXECUTORS_DRAINED):
        return Phase.SCALING_DOWN
    if report is None or not status.conditions.is_true(ConditionType.ACKNOWLEDGED):
        return Phase.PENDING
    if report.state is DrainState.ACKNOWLEDGED and spec.execution == "AfterApproval" and not spec.approved:
        return Phase.AWAITING_APPROVAL
    return _BY_STATE.get(report.state, status.phase)


def mark_active(status: DrainStatus, phase: Phase, message: str, malformed: str | None) -> None:
    """Set what every active drain has; each condition exists from the first visit on."""
    status.phase, status.message = phase, message
    if status.conditions.get(ConditionType.ACCEPTED) is None:
        status.set(ConditionType.ACCEPTED, "Unknown", Reason.NOT_YET, message)
    if status.conditions.get(ConditionType.ACKNOWLEDGED) is None:
        status.set(ConditionType.ACKNOWLEDGED, "Unknown", Reason.NOT_YET, "the agent has not been asked yet")
    for type_, text in _PENDING.items():
        if status.conditions.get(type_) is None:
            status.set(type_, "Unknown", Reason.NOT_YET, text)
    if malformed is not None:
        status.set(ConditionType.STALLED, "True", Reason.MALFORMED_REPORT, malformed)
    status.set(ConditionType.SUCCEEDED, "Unknown", _why_not_yet(status) or phase, message)
    status.set(ConditionType.FINISHED, "False", Reason.IN_PROGRESS, "")
    status.set(ConditionType.RECONCILING, "True", phase, message)


def _why_not_yet(status: DrainStatus) -> str:
    """Return what holds the drain up, where that says more than its phase."""
    if status.conditions.is_true(ConditionType.STALLED):
        stalled = status.conditions.get(ConditionType.STALLED)
        return stalled.reason if stalled else ""
    for condition in status.conditions:
        if condition.status != "True":
            return "" if condition.reason in (Reason.NOT_YET, Reason.IN_PROGRESS) else condition.reason
    return ""
