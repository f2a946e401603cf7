"""Step: windows and timers have fired, the checkpoints are as the next version wants them."""

from __future__ import annotations

from spark_drain_store import DrainReport, DrainState

from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason

__all__ = ["decide", "run"]


def decide(report: DrainReport, mode: str) -> tuple[str, Reason, str]:
    """Return status, reason and message of the condition Flushed."""
    if report.state in (DrainState.REPORTING, DrainState.DRAINED):
        if mode == "Stop":
            return "True", Reason.COMPLETED, "mode Stop: everything is committed, the state is kept for the next version"
        return "True", Reason.COMPLETED, f"windows and timers have fired and are committed (queries: {len(report.queries)})"
    if report.state is DrainState.STALLED:
        return "False", Reason.FLUSH_STALLED, report.message or "the flush keeps failing"
    return "False", Reason.IN_PROGRESS, report.message or "windows and timers are being fired; the drain can no longer be withdrawn"


def run(drain: DrainPass) -> Outcome:
    """Follow the report; a stalled flush goes on by itself when its cause is gone."""
    assert drain.report is not None
    status, reason, message = decide(drain.report, drain.spec.mode)
    drain.status.set(ConditionType.FLUSHED, status, reason, message)
    if reason is Reason.FLUSH_STALLED:
        drain.status.set(ConditionType.STALLED, "True", drain.report.reason or reason, message)
    if status == "True":
        return DONE
    return Waiting(drain.settings.resync_seconds, message, 0.0 if reason is Reason.FLUSH_STALLED else drain.unhurried)
