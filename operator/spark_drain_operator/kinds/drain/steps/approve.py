"""Step: the plan is carried out, waits for approval, or was all that was asked for."""

from __future__ import annotations

from enum import Enum

from spark_drain_store import DrainReport, DrainState, reasons

from spark_drain_operator.clock import later
from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting, ended
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import Phase
from spark_drain_operator.kinds.drain.spec import DrainSpec

__all__ = ["Go", "decide", "run", "start_clock"]


class Go(Enum):
    """Whether to go on."""

    GO = "go"
    PLANNING = "planning"
    PLANNED = "planned"
    ASK = "ask"


def decide(spec: DrainSpec, report: DrainReport) -> Go:
    """Return whether the drain may go on after its acknowledgement."""
    if spec.execution == "PlanOnly":
        return Go.PLANNED if report.reason == reasons.PLANNED or report.state is not DrainState.ACKNOWLEDGED else Go.PLANNING
    if spec.awaits_approval and report.state is DrainState.ACKNOWLEDGED:
        return Go.ASK if report.awaits_approval else Go.PLANNING
    return Go.GO


def run(drain: DrainPass) -> Outcome:
    """Carry the plan out as soon as somebody has approved it."""
    report, status = drain.report, drain.status
    assert report is not None
    match decide(drain.spec, report):
        case Go.PLANNING:
            if not drain.spec.awaits_approval:  # whose clock is started by the approval
                status.start_time = status.start_time or drain.now
            return Waiting(drain.settings.resync_seconds, report.message or "the agent is planning the drain")
        case Go.PLANNED:
            return ended(Phase.PLANNED, Phase.PLANNED, report.message or f"planned {len(report.queries)} queries; nothing was touched")
        case Go.ASK:
            return Waiting(drain.settings.resync_seconds, f"planned {len(report.queries)} queries; set spec.approved to carry out the plan")
        case Go.GO:
            start_clock(drain, told=not report.state.beyond_return)
    return DONE


def start_clock(drain: DrainPass, *, told: bool) -> None:
    """Start the clock of timeoutSeconds and tell the agent; a changed timeout is told again, an approval is never taken back."""
    status, notification = drain.status, drain.notification
    status.start_time = status.start_time or drain.now
    if told and notification is not None:
        drain.update_notification(
            deadline=later(status.start_time, drain.spec.timeout),
            approved=drain.spec.approved or notification.approved,
        )
