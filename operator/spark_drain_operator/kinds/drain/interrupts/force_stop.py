"""Interrupt: the deadline has passed and spec.onTimeout is ForceStop."""

from __future__ import annotations

from dataclasses import replace

from spark_drain_operator.engine.outcome import DONE, Ended, Noted, Outcome, ended
from spark_drain_operator.kinds.drain.limits import given_up
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason, message_of
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.kinds.drain.steps import restart
from spark_drain_operator.kinds.drain.steps.scale_down import scale_down

__all__ = ["run"]


def run(drain: DrainPass) -> Outcome:
    """Suspend the application undrained; the ending never says Drained.

    Only once the stored status says so: a restart must not take the next version for what was to be stopped.
    """
    ending = drain.status.withdrawal
    if ending is None or not drain.status.forced:
        return DONE
    drain.needs_fresh_reads()
    if drain.unreadable:
        undone = given_up(drain.spec, drain.status, deleted=drain.deleted)
        return Ended(replace(undone, message=f"{undone.message}; {drain.unreadable}")) if undone is not None else DONE
    if not DrainStatus.read(drain.body, drain.now).forced:
        return Noted(ending.message)
    if drain.application is None and not drain.status.conditions.is_true(ConditionType.SCALED_DOWN):
        ref = drain.spec.application
        return ended(Phase.ABANDONED, Reason.APPLICATION_GONE, message_of(Reason.APPLICATION_GONE, kind=ref.kind, name=ref.name))
    outcome = DONE if drain.status.restart_generation else scale_down(drain, forced=True)
    if outcome == DONE:
        outcome = restart.run(drain)
    if outcome != DONE:
        return outcome
    scaled_down = drain.status.conditions.get(ConditionType.SCALED_DOWN)
    told = message_of(Reason.APPLICATION_RESUMED) if drain.replaced else ""
    if scaled_down is not None and scaled_down.reason == Reason.APPLICATION_NOT_RESTARTED:
        told = scaled_down.message
    return Ended(replace(ending, message=f"{ending.message}; {told}") if told else ending)
