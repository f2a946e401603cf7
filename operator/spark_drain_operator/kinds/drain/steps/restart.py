"""Step: the application is started again, where that was asked for."""

from __future__ import annotations

from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting
from spark_drain_operator.kinds.drain.messages import forget_notification
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason, message_of
from spark_drain_operator.kinds.drain.steps import await_application

__all__ = ["run"]


def run(drain: DrainPass) -> Outcome:
    """Resume what this drain has suspended, once: what is suspended again later, somebody else means.

    The notification goes first, so that the next driver is not asked to drain. The generation that is resumed is in the stored status
    before it is resumed: an operator that is killed in between must not suspend the next run.
    """
    status, application = drain.status, drain.application
    if not status.restart_generation:
        scaled_down = status.conditions.get(ConditionType.SCALED_DOWN)
        suspended = scaled_down is not None and scaled_down.reason == Reason.APPLICATION_SUSPENDED
        if drain.spec.after_drain != "Restart" or not suspended or application is None:
            return DONE
        status.restart_generation = application.generation
        return Waiting(0.0, message_of(Reason.APPLICATION_SUSPENDED))
    if drain.unreadable and not drain.deleted:
        return await_application.run(drain)
    if application is None:
        return DONE
    if application.suspend_requested and application.generation == status.restart_generation:
        forget_notification(drain.messages.channel, drain.drain_id)
        drain.adapter.resume(drain.namespace, application)
    status.set(ConditionType.SCALED_DOWN, "True", Reason.APPLICATION_RESTARTED, message_of(Reason.APPLICATION_RESTARTED))
    return DONE
