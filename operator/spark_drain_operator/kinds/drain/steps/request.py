"""Step: the drain notification, which is also the lock of "one active drain per application"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from spark_drain_store import DrainNotification, DrainReport
from spark_drain_store.channel import config_map_names

from spark_drain_operator.applications.protocol import current_driver
from spark_drain_operator.clock import later
from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting, ended
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.orphans import is_orphan
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason, message_of
from spark_drain_operator.kinds.drain.resource import RESOURCE
from spark_drain_operator.storage.channels import Owners
from spark_drain_operator.storage.pods import DriverPod

__all__ = ["Action", "Decision", "blocking", "decide", "removed", "run"]


_POLL_SECONDS = 2.0
_SUSPENDED_WITHIN_SECONDS = 60
_AT_THE_DEADLINE = (Reason.DEADLINE_EXCEEDED, Reason.BATCH_STILL_RUNNING)


class Action(Enum):
    """What to do about the notification."""

    KEEP = "keep"
    WRITE = "write"
    REBIND = "rebind"
    WAIT_FOR_DRIVER = "wait for driver"
    BLOCKED = "blocked"
    WAIT_FOR_PLAN = "wait for plan"
    REMOVED = "removed"


@dataclass(frozen=True)
class Decision:
    """An action, and the id of the drain that stands in the way, if any."""

    action: Action
    other: str = ""


def blocking(
    notifications: Mapping[str, DrainNotification], reports: Mapping[str, DrainReport], drain_id: str, now: datetime
) -> tuple[DrainNotification, bool] | None:
    """Return another drain's notification that must go first, and whether it is only a plan.

    One whose report says Drained still counts: its application is about to be scaled down. So does one that its agent has given up
    before its deadline, by a clock of its own: at the deadline it may be stopped by force.
    """
    for other in notifications.values():
        report = reports.get(other.drain_id)
        to_come = other.deadline is not None and now < later(other.deadline, _SUSPENDED_WITHIN_SECONDS)
        over = report is not None and report.state.given_up and not (to_come and report.reason in _AT_THE_DEADLINE)
        if other.drain_id != drain_id and not over:
            return other, other.options.get("execution") == "PlanOnly"
    return None


def decide(
    *,
    drain_id: str,
    notifications: Mapping[str, DrainNotification],
    reports: Mapping[str, DrainReport],
    written_before: bool,
    driver: DriverPod | None,
    other_driver_alive: bool,
    now: datetime,
) -> Decision:
    """Return what to do about the notification.

    Parameters
    ----------
    drain_id
        This drain's.
    notifications, reports
        What the store holds.
    written_before
        Whether the status remembers a notification.
    driver
        The driver that runs or is about to.
    other_driver_alive
        Whether an older driver has not ended yet.
    now
        Time of the pass.
    """
    mine = notifications.get(drain_id)
    if mine is None and written_before:
        return Decision(Action.REMOVED)
    if mine is None:
        found = blocking(notifications, reports, drain_id, now)
        if found is not None:
            return Decision(Action.WAIT_FOR_PLAN if found[1] else Action.BLOCKED, found[0].drain_id)
        return Decision(Action.WRITE if driver is not None else Action.WAIT_FOR_DRIVER)
    if drain_id in reports or mine.withdrawn:
        return Decision(Action.KEEP)
    if driver is None:
        return Decision(Action.WAIT_FOR_DRIVER)
    if driver.run_id and mine.run_id and driver.run_id != mine.run_id:
        # Two drivers that both think they are meant would both drain: wait for the old one's end.
        return Decision(Action.WAIT_FOR_DRIVER if other_driver_alive else Action.REBIND)
    return Decision(Action.KEEP)


def _decide(drain: DrainPass, driver: DriverPod | None) -> Decision:
    """Decide, and remove what is left in the way of PipelineDrains that are gone."""
    application, messages = drain.application, drain.messages
    drivers = application.drivers if application else ()
    notifications = dict(messages.notifications)
    while True:
        decision = decide(
            drain_id=drain.drain_id,
            notifications=notifications,
            reports=messages.reports,
            written_before=bool(drain.status.drain_id),
            driver=driver,
            other_driver_alive=any(other.alive and other is not driver for other in drivers),
            now=drain.now,
        )
        if not decision.other or not is_orphan(drain.cluster, drain.namespace, notifications[decision.other]):
            break
        del notifications[decision.other]
    left = messages.notifications.keys() - notifications.keys()
    if left:
        messages.remove(left)
    return decision


def run(drain: DrainPass) -> Outcome:
    """Write the notification once, or bind it to the application's new run while nobody has answered."""
    application, status = drain.application, drain.status
    driver = current_driver(application)
    decision = _decide(drain, driver)
    if decision.action not in (Action.KEEP, Action.WRITE, Action.WAIT_FOR_DRIVER, Action.WAIT_FOR_PLAN):
        drain.needs_fresh_reads()
    match decision.action:
        case Action.BLOCKED:
            message = message_of(Reason.DRAIN_ALREADY_ACTIVE, other=_name_of(drain, decision.other))
            return ended(Phase.REJECTED, Reason.DRAIN_ALREADY_ACTIVE, message)
        case Action.WAIT_FOR_PLAN:
            message = message_of(Reason.WAITING_FOR_PLAN, other=_name_of(drain, decision.other))
            status.set(ConditionType.ACCEPTED, "Unknown", Reason.WAITING_FOR_PLAN, message)
            return Waiting(drain.settings.resync_seconds, message)  # its end is seen in the ConfigMaps
        case Action.REMOVED:
            return removed(drain)
        case Action.WAIT_FOR_DRIVER:
            ref = drain.spec.application
            state = application.state if application else "none"
            message = message_of(Reason.WAITING_FOR_DRIVER, kind=ref.kind, name=ref.name, state=state)
            status.set(ConditionType.ACKNOWLEDGED, "Unknown", Reason.WAITING_FOR_DRIVER, message)
            return Waiting(drain.settings.resync_seconds, message)
        case Action.WRITE | Action.REBIND:
            assert driver is not None
            assert application is not None
            owners = Owners((), complete=False)
            if drain.messages.found:
                owners = drain.cluster.channels.owners(drain.namespace, drain.spec.application.kind, application.name, application.uid)
            if owners.another:
                message = message_of(Reason.CONFIG_MAPS_OF_ANOTHER, names=", ".join(owners.another), name=application.name)
                status.set(ConditionType.ACCEPTED, "Unknown", Reason.CONFIG_MAPS_OF_ANOTHER, message)
                return Waiting(_POLL_SECONDS, message)
            _write(drain, driver, rebind=decision.action is Action.REBIND, complete=owners.complete)
            # Only now: the write has shown that there were no other requests when the reports were read.
            drain.messages.make_room()
    notification = drain.notification
    if notification is not None:
        if not status.drain_id or status.notification_attempt != notification.attempt:
            status.notification_time = drain.now if status.notification_attempt else notification.created_at.replace(microsecond=0)
        status.drain_id, status.notification_attempt = notification.drain_id, notification.attempt
        if application is not None:
            status.application_uid = status.application_uid or application.uid
        status.set(ConditionType.ACCEPTED, "True", Reason.ACCEPTED, message_of(Reason.ACCEPTED))
    if driver is not None and drain.report is None:
        status.run_id, status.driver_pod_name, status.driver_pod_uid = driver.run_id, driver.name, driver.uid
    return DONE


def removed(drain: DrainPass) -> Outcome:
    """End the drain: an agent that finds its notification removed holds the driver no longer, so there is nothing to scale down safely."""
    requests, _ = config_map_names(drain.spec.application.name, drain.spec.application.kind)
    if not drain.may_be_committed:
        return ended(Phase.CANCELLED, Reason.NOTIFICATION_REMOVED, message_of(Reason.NOTIFICATION_REMOVED, requests=requests))
    state = drain.report.state if drain.report is not None else drain.status.phase
    message = message_of(Reason.NOTIFICATION_REMOVED_TOO_LATE, requests=requests, state=state)
    return ended(Phase.FAILED, Reason.NOTIFICATION_REMOVED_TOO_LATE, message)


def _write(drain: DrainPass, driver: DriverPod, *, rebind: bool, complete: bool) -> None:
    application, ref, messages = drain.application, drain.spec.application, drain.messages
    assert application is not None
    if not complete:
        owner = drain.adapter.owner_reference(application)
        # Where the requests were missing the write creates them, or conflicts: another drain may be in them by now.
        requests = bool(messages.requests_version)
        drain.cluster.channels.ensure(messages.channel, drain.namespace, ref.kind, ref.name, owner, requests=requests)
    old = drain.notification
    if rebind and old is not None:
        messages.write(replace(old, run_id=driver.run_id, attempt=old.attempt + 1))
        return
    if not drain.confirmed:
        drain.cluster.objects(RESOURCE).confirm(drain.body)
    messages.write(
        DrainNotification(
            drain_id=drain.drain_id,
            created_at=drain.now,
            run_id=driver.run_id or None,
            mode=drain.spec.mode,
            options=drain.spec.options,
            pipeline_drain=drain.body["metadata"]["name"],
        )
    )


def _name_of(drain: DrainPass, drain_id: str) -> str:
    name = drain.cluster.objects(RESOURCE).name_of(drain.namespace, drain.spec.application.name, drain_id)
    if name is not None:
        return f"PipelineDrain {name!r}"
    store = f"configmap:{drain.namespace}/{drain.spec.application.name}"
    command = f"python -m spark_drain_store --metadata-store {store} drain"
    return f"a request without a PipelineDrain (`{command} withdraw {drain_id}` ends it, or `{command} cleanup` when it has finished)"
