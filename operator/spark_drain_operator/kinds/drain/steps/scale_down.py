"""Step: no pod of the application runs, and no driver will come by itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum

from spark_drain_operator.applications.protocol import Activity, Application, SuspendNotStoredError
from spark_drain_operator.clock import format_time, later
from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting, ended
from spark_drain_operator.kinds.drain.limits import PATIENCE_SECONDS
from spark_drain_operator.kinds.drain.observation import ACTS_WITHIN_SECONDS, DrainPass
from spark_drain_operator.kinds.drain.reasons import SPEC_PERHAPS_CHANGED, ConditionType, Phase, Reason, message_of
from spark_drain_operator.kinds.drain.resource import RESOURCE
from spark_drain_operator.kinds.drain.steps.request import removed
from spark_drain_operator.storage.pods import PodName

__all__ = ["Action", "decide", "run", "scale_down"]

_QUIET_SECONDS = 30
_POLL_SECONDS = 2.0  # executor pods are not watched
_SHOWN = 5


class Action(Enum):
    """What to do next."""

    SUSPEND = "suspend"
    DELETE = "delete"
    WAIT = "wait"
    DONE = "done"


def decide(
    *,
    after: str,
    forced: bool,
    application: Application | None,
    left_over: Sequence[PodName],
    requested: datetime | None,
    requested_in: str,
    now: datetime,
) -> Action:
    """Return what to do next; pods decide, not the state that the application's operator shows.

    Parameters
    ----------
    after
        spec.afterDrain.
    forced
        Suspend it in whatever state it is.
    application
        As seen now.
    left_over
        Its pods that may still run a container.
    requested, requested_in
        When scaling down was first asked for, and the application's state then.
    now
        Time of the pass.
    """
    if application is None:
        return Action.WAIT if left_over else Action.DONE
    if after == "Delete" and not forced:
        return Action.DELETE
    if not application.suspend_requested:
        settled = application.activity is Activity.RUNNING or application.will_not_run
        return Action.SUSPEND if forced or settled else Action.WAIT
    if left_over or application.driver_alive or application.activity not in (Activity.SUSPENDED, Activity.ENDED):
        return Action.WAIT
    if application.activity is Activity.SUSPENDED and application.drivers:
        return Action.WAIT
    # Suspended while its operator was submitting: the driver pod of that submission appears ten seconds later.
    submitting = requested_in not in ("RUNNING", "SUSPENDED", "COMPLETED", "FAILED")
    if requested is not None and submitting and now < later(requested, _QUIET_SECONDS):
        return Action.WAIT
    return Action.DONE


def scale_down(drain: DrainPass, *, forced: bool) -> Outcome:
    """Suspend or delete the application and wait for its pods; not deleted where its spec was changed since, or its result not kept."""
    status, application = drain.status, drain.application
    after = "Suspend" if drain.changed or drain.unkept else drain.spec.after_drain  # its report would go with it
    left_over: tuple[PodName, ...] = ()
    if drain.replaced or drain.resumed:
        drain.needs_fresh_reads()
    if drain.replaced:
        runs = {status.run_id, status.seen_run_id} - {status.next_run_id}
        driver = drain.drained_driver
        left_over = (PodName(driver.name, "", driver.uid),) if driver is not None else ()
        left_over += tuple(pod for run_id in sorted(runs) for pod in drain.adapter.running_executors(drain.namespace, run_id))
        return _wait(drain, left_over) if left_over else _resumed(drain)
    if drain.resumed and not _is_ignored(drain, forced=forced):
        return _wait_for_its_operator(drain)
    if application is None or application.suspend_requested:
        left_over = _left_over(drain)
    action = decide(
        after=after,
        forced=forced,
        application=application,
        left_over=left_over,
        requested=status.scale_down_time,
        requested_in=status.scale_down_state,
        now=drain.now,
    )
    if action is Action.DONE:
        reason = Reason.APPLICATION_DELETED if application is None else Reason.APPLICATION_SUSPENDED
        status.set(ConditionType.SCALED_DOWN, "True", reason, message_of(reason))
        return DONE
    if action in (Action.SUSPEND, Action.DELETE):
        return _ask_for_it(drain, action, forced=forced)
    return _wait(drain, left_over)


def _ask_for_it(drain: DrainPass, action: Action, *, forced: bool) -> Outcome:
    """Suspend or delete the application as it was observed."""
    status, application = drain.status, drain.application
    assert application is not None
    if drain.cluster.cache.answered:
        if forced or action is Action.DELETE or drain.changed:
            drain.needs_fresh_reads()
        drain.reread_messages()  # whoever removes the notification lets the driver go on
    if drain.notification is None and not application.deleted:  # nothing holds the driver
        return removed(drain) if status.scale_down_time is None else _resumed(drain)
    if not drain.confirmed:  # after the application was seen, which may be a later run by now
        drain.cluster.objects(RESOURCE).confirm(drain.body)
    if action is Action.DELETE:
        drain.adapter.delete(drain.namespace, application)
    else:
        try:
            drain.adapter.suspend(drain.namespace, application)
        except SuspendNotStoredError:
            return ended(Phase.FAILED, Reason.SUSPEND_NOT_STORED, message_of(Reason.SUSPEND_NOT_STORED))
    driver = application.serving_driver
    if driver is not None:  # Spark's operator may have restarted it since the last report
        status.run_id, status.driver_pod_name, status.driver_pod_uid = driver.run_id, driver.name, driver.uid
    if status.scale_down_time is None:
        status.scale_down_time, status.scale_down_state = drain.now, application.state or "New"
    message = message_of(Reason.SCALE_DOWN_REQUESTED)
    status.set(ConditionType.SCALED_DOWN, "False", Reason.SCALE_DOWN_REQUESTED, message)
    if _is_late(drain):
        message = message_of(Reason.SCALE_DOWN_INCOMPLETE, time=format_time(status.scale_down_time))
        status.set(ConditionType.STALLED, "True", Reason.SCALE_DOWN_INCOMPLETE, message)
    return Waiting(_POLL_SECONDS, message)


def _left_over(drain: DrainPass) -> tuple[PodName, ...]:
    """Return the pods that may still run a container: the drivers, which are known, and what is left once they have ended."""
    application = drain.application
    if application is not None and application.driver_alive:
        return tuple(PodName(driver.name, "", driver.uid) for driver in application.drivers if driver.alive)
    # An executor that starts without a driver ends by itself, and may never be scheduled.
    pending = application is None
    return drain.adapter.left_over(drain.namespace, drain.spec.application.name, drain.status.application_uid, pending=pending)


def _is_ignored(drain: DrainPass, *, forced: bool) -> bool:
    """Whether the application's own operator leaves the drained driver alone although the spec was changed."""
    driver, application, since = drain.drained_driver, drain.application, drain.status.changed_time
    assert driver is not None
    assert application is not None
    assert since is not None
    settled = forced or application.activity is Activity.RUNNING
    seconds = ACTS_WITHIN_SECONDS if drain.perhaps_changed else _QUIET_SECONDS
    return settled and not driver.terminating and drain.now >= later(since, seconds)


def _wait_for_its_operator(drain: DrainPass) -> Waiting:
    application, driver = drain.application, drain.drained_driver
    assert application is not None
    assert driver is not None
    late = f". Its state is {application.state}: look at its operator and at driver pod {driver.name}" if _is_late(drain) else ""
    if drain.perhaps_changed:
        message = SPEC_PERHAPS_CHANGED.format(seconds=ACTS_WITHIN_SECONDS, late=late)
    else:
        message = message_of(Reason.SPEC_CHANGED, seconds=_QUIET_SECONDS, late=late)
    return _waiting(drain, Reason.SPEC_CHANGED, message)


def _resumed(drain: DrainPass) -> Outcome:
    drain.status.set(ConditionType.SCALED_DOWN, "True", Reason.APPLICATION_RESUMED, message_of(Reason.APPLICATION_RESUMED))
    return DONE


def _wait(drain: DrainPass, left_over: Sequence[PodName]) -> Waiting:
    return _waiting(drain, Reason.WAITING_FOR_PODS, _waiting_message(drain.application, left_over))


def _waiting(drain: DrainPass, reason: str, message: str) -> Waiting:
    drain.status.set(ConditionType.SCALED_DOWN, "False", reason, message)
    if _is_late(drain):
        drain.status.set(ConditionType.STALLED, "True", reason, message)
    return Waiting(_POLL_SECONDS, message, 0.0 if drain.status.scale_down_time is None else _POLL_SECONDS)


def _is_late(drain: DrainPass) -> bool:
    status = drain.status
    drained = status.conditions.get(ConditionType.EXECUTORS_DRAINED)
    since = status.scale_down_time or status.changed_time or status.withdrawal_time or (drained.last_transition_time if drained else None)
    return since is not None and drain.now >= later(since, PATIENCE_SECONDS)


def _waiting_message(application: Application | None, left_over: Sequence[PodName]) -> str:
    if left_over:
        names = ", ".join(pod.name for pod in left_over[:_SHOWN]) + (", ..." if len(left_over) > _SHOWN else "")
        return message_of(Reason.WAITING_FOR_PODS, count=len(left_over), pods=names)
    return f"waiting for the application's operator (application state {application.state if application else 'none'})"


def run(drain: DrainPass) -> Outcome:
    """Scale down what is drained."""
    if drain.spec.after_drain == "Keep":
        drain.status.set(ConditionType.SCALED_DOWN, "False", Reason.NOT_REQUESTED, message_of(Reason.NOT_REQUESTED))
        return DONE
    return scale_down(drain, forced=False)
