"""Step: the application cannot be read, so nothing can be done for it; deadlines and withdrawals go on."""

from __future__ import annotations

from dataclasses import replace

from spark_drain_operator.engine.outcome import DONE, Ended, Outcome, Waiting
from spark_drain_operator.kinds.drain.limits import not_scaled_down
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason, message_of

__all__ = ["run"]


def run(drain: DrainPass) -> Outcome:
    """Wait until it can be read again; a complete drain that is deleted is not held for ever."""
    if not drain.unreadable:
        return DONE
    ending = not_scaled_down(drain.status) if drain.complete and drain.deleted else None
    if ending is not None:
        drain.needs_fresh_reads()
        return Ended(replace(ending, message=f"{ending.message}; {drain.unreadable}"))
    ref = drain.spec.application
    message = message_of(Reason.APPLICATION_UNREADABLE, kind=ref.kind, name=ref.name, error=drain.unreadable, what="drain")
    drain.status.set(ConditionType.STALLED, "True", Reason.APPLICATION_UNREADABLE, message)
    return Waiting(drain.settings.resync_seconds, message)
