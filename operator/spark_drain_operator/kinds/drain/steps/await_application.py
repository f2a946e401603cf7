"""Step: the application cannot be read, so nothing can be done for it; deadlines and withdrawals go on."""

from __future__ import annotations

from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason, message_of

__all__ = ["run"]


def run(drain: DrainPass) -> Outcome:
    """Wait until it can be read again."""
    if not drain.unreadable:
        return DONE
    ref = drain.spec.application
    message = message_of(Reason.APPLICATION_UNREADABLE, kind=ref.kind, name=ref.name, error=drain.unreadable, what="drain")
    drain.status.set(ConditionType.STALLED, "True", Reason.APPLICATION_UNREADABLE, message)
    return Waiting(drain.settings.resync_seconds, message)
