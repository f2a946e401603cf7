"""Step: the agent's first answer."""

from __future__ import annotations

from datetime import datetime

from spark_drain_operator.applications.protocol import current_driver
from spark_drain_operator.clock import format_time
from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting
from spark_drain_operator.kinds.drain.limits import acknowledge_by
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason, message_of
from spark_drain_operator.kinds.drain.steps import approve

__all__ = ["run", "seconds_left"]


def seconds_left(until: datetime | None, now: datetime, resync: float) -> float:
    """Return when to look again: at the limit, but not later than the resync."""
    return resync if until is None else min(resync, max(0.0, (until - now).total_seconds()))


def run(drain: DrainPass) -> Outcome:
    """Wait for a report; running out of time is `withdraw`'s business."""
    status, report = drain.status, drain.report
    if report is not None:
        status.set(ConditionType.ACKNOWLEDGED, "True", Reason.AGENT_ANSWERED, message_of(Reason.AGENT_ANSWERED, run=", ".join(report.runs)))
        return DONE
    if status.answered or status.conditions.is_true(ConditionType.ACKNOWLEDGED):
        if drain.forward_only or not drain.spec.awaits_approval:  # it has a deadline, and the agent may wait for its approval
            approve.start_clock(drain, told=not drain.forward_only and drain.spec.execution != "PlanOnly")
        return Waiting(drain.settings.resync_seconds, "the agent's report can no longer be read; waiting for the next one")
    until = acknowledge_by(drain.spec, status.notification_time, current_driver(drain.application))
    message = message_of(
        Reason.WAITING_FOR_AGENT,
        run=status.run_id or "any",
        pod=status.driver_pod_name or "not known",
        until=format_time(until) if until else f"{drain.spec.acknowledge_timeout} s after the driver runs",
    )
    status.set(ConditionType.ACKNOWLEDGED, "Unknown", Reason.WAITING_FOR_AGENT, message)
    return Waiting(seconds_left(until, drain.now, drain.settings.resync_seconds), message)
