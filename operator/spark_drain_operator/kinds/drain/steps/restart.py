"""Step: the application is started again, where that was asked for."""

from __future__ import annotations

from spark_drain_operator.applications.protocol import Activity
from spark_drain_operator.engine.outcome import DONE, Noted, Outcome
from spark_drain_operator.kinds.drain.messages import forget_notification
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason, message_of
from spark_drain_operator.kinds.drain.steps import await_application

__all__ = ["run"]

_SUSPENDED_BY_OTHERS = "somebody else has suspended it"
_SUSPENDED_SINCE = "somebody has suspended or changed it since"
_SUSPENSION_KEPT = "a webhook, or the API server, keeps spec.suspend"
_ENDED = "its driver had ended by itself (state {state}), and its own operator starts it then only when its spec is changed"


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
        drain.needs_fresh_reads()
        if application.suspended_by_others:
            return _left(drain, _SUSPENDED_BY_OTHERS)
        status.restart_generation = application.generation
        return Noted(message_of(Reason.APPLICATION_SUSPENDED))
    drain.needs_fresh_reads()
    if drain.unreadable and not drain.deleted:
        return await_application.run(drain)
    if application is None:
        if not drain.unreadable:
            status.set(ConditionType.SCALED_DOWN, "True", Reason.APPLICATION_DELETED, message_of(Reason.APPLICATION_DELETED))
        return DONE
    if application.suspend_requested:
        if application.generation != status.restart_generation:
            return _left(drain, _SUSPENDED_SINCE)
        forget_notification(drain.messages.channel, drain.drain_id)
        if not drain.adapter.resume(drain.namespace, application):
            return _left(drain, _SUSPENSION_KEPT)
    if application.activity is Activity.ENDED:
        return _left(drain, _ENDED.format(state=application.state))
    status.set(ConditionType.SCALED_DOWN, "True", Reason.APPLICATION_RESTARTED, message_of(Reason.APPLICATION_RESTARTED))
    return DONE


def _left(drain: DrainPass, why: str) -> Outcome:
    message = message_of(Reason.APPLICATION_NOT_RESTARTED, why=why)
    drain.status.set(ConditionType.SCALED_DOWN, "True", Reason.APPLICATION_NOT_RESTARTED, message)
    return DONE
