"""The times at which patience ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from spark_drain_store import DrainReport, DrainState
from spark_drain_store.channel import config_map_names

from spark_drain_operator.clock import format_time, later
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import NOT_SCALED_DOWN, ConditionType, Phase, Reason, message_of
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.storage.pods import DriverPod

__all__ = [
    "PATIENCE_SECONDS",
    "Limits",
    "acknowledge_by",
    "give_up_at",
    "given_up",
    "kept",
    "limits_of",
    "next_limit",
    "not_scaled_down",
    "overdue",
    "reached",
]

PATIENCE_SECONDS = 300
"""How long what usually takes seconds may take before the drain is called stalled."""


@dataclass(frozen=True)
class Limits:
    """When what ends; None is never.

    Parameters
    ----------
    expiration
        For a drain that has not begun.
    acknowledgement
        For an agent that has not answered.
    deadline
        For a drain that has begun.
    """

    expiration: datetime | None = None
    acknowledgement: datetime | None = None
    deadline: datetime | None = None


def acknowledge_by(spec: DrainSpec, notification_time: datetime | None, driver: DriverPod | None) -> datetime | None:
    """Return until when the agent may answer; counted from the request, but not before its driver runs."""
    if notification_time is None or driver is None or driver.running_since is None:
        return None
    return later(max(notification_time, driver.running_since), spec.acknowledge_timeout)


def give_up_at(spec: DrainSpec, withdrawal_time: datetime) -> datetime:
    """Return when an agent that was told of a withdrawal, and has not answered, is no longer waited for."""
    return later(withdrawal_time, spec.acknowledge_timeout)


def limits_of(spec: DrainSpec, status: DrainStatus, driver: DriverPod | None, report: DrainReport | None) -> Limits:
    """Return the limits that are in force; a drain that is complete has none, however long the pods take to end."""
    if status.conditions.is_true(ConditionType.EXECUTORS_DRAINED):
        return Limits()
    if status.start_time is None:
        acknowledgement = None if report is not None or status.answered else acknowledge_by(spec, status.notification_time, driver)
        return Limits(expiration=_expiration(spec, status), acknowledgement=acknowledgement)
    return Limits(deadline=later(status.start_time, spec.timeout))


def _expiration(spec: DrainSpec, status: DrainStatus) -> datetime | None:
    times = [spec.expiration] if spec.expiration is not None else []
    if spec.expiration_seconds is not None and status.creation_time is not None:
        times.append(later(status.creation_time, spec.expiration_seconds))
    return min(times, default=None)


def next_limit(limits: Limits, now: datetime) -> float | None:
    """Return the seconds until the next limit, or None."""
    times = [time for time in (limits.expiration, limits.acknowledgement, limits.deadline) if time is not None]
    return max(0.0, (min(times) - now).total_seconds()) if times else None


def kept(limits: Limits, report: DrainReport | None, now: datetime) -> bool:
    """Return whether the agent was done before a deadline that has passed since; a next run may be repeating its last steps."""
    if report is None or not report.state.forward_only or limits.deadline is None:
        return False
    done = report.drained_at or (report.updated_at if report.state is DrainState.DRAINED else None)
    return done is not None and now >= limits.deadline >= done


def reached(limits: Limits, drain: DrainPass) -> Ending | None:
    """Return the ending that a passed limit asks for."""
    now, spec = drain.now, drain.spec
    if limits.deadline is not None and now >= limits.deadline:
        phase = Phase.FORCE_STOPPED if spec.stops_by_force else Phase.TIMED_OUT
        report = drain.report
        state = f"the agent was at {report.state}: {drain.agent_message or 'no message'}" if report else "the agent has not responded"
        return Ending(phase, Reason.DEADLINE_EXCEEDED, message_of(Reason.DEADLINE_EXCEEDED, seconds=spec.timeout, state=state))
    if limits.expiration is not None and now >= limits.expiration:
        return _expired(limits.expiration, drain.status)
    if limits.acknowledgement is not None and now >= limits.acknowledgement:
        requests, reports = config_map_names(spec.application.name, spec.application.kind)
        malformed = drain.messages.malformed.get(drain.drain_id)
        message = message_of(
            Reason.AGENT_NOT_RESPONDING,
            seconds=spec.acknowledge_timeout,
            requests=requests,
            reports=reports,
            detail=f" Its report cannot be read: {malformed}" if malformed else "",
        )
        return Ending(Phase.FAILED, Reason.AGENT_NOT_RESPONDING, message)
    return None


def _expired(time: datetime, status: DrainStatus) -> Ending:
    what = "it waited for spec.approved" if status.phase is Phase.AWAITING_APPROVAL else status.message
    waited = f": {what}" if what else ""
    return Ending(Phase.EXPIRED, Reason.EXPIRED, message_of(Reason.EXPIRED, time=format_time(time), waited=waited))


def overdue(spec: DrainSpec, status: DrainStatus, report: DrainReport | None, *, deleted: bool) -> Ending | None:
    """Return how a drain ends that cannot be looked at; one that its agent has done in time does not.

    A complete one is tried again for as long as somebody wants it, and for five minutes more.
    One that has not begun ends at once when nobody wants it any more. One that the agent may know of ends when the agent would not have
    been waited for any longer either; what it then does, its own deadline and the notification say. One that is to be stopped by force
    waits until that can be done, or until it is deleted.
    """
    if status.conditions.is_true(ConditionType.EXECUTORS_DRAINED):
        return not_scaled_down(status) if deleted else None
    limits = limits_of(spec, status, None, None)
    if kept(limits, report, status.now):
        return None
    now, begun = status.now, bool(status.drain_id)
    wish = status.wish
    past = status.conditions.is_true(ConditionType.SOURCES_STOPPED) or status.withdrawal != wish
    past = past or (report is not None and report.state.forward_only)
    if past and wish is not None and wish.phase not in (Phase.TIMED_OUT, Phase.FORCE_STOPPED):
        wish = None  # it came too late
    if wish is None and deleted and not past:
        wish = Ending(Phase.CANCELLED, Reason.DELETED, message_of(Reason.DELETED))
    elif wish is None and spec.cancel and not past:
        wish = Ending(Phase.CANCELLED, Reason.CANCEL_REQUESTED, message_of(Reason.CANCEL_REQUESTED))
    elif wish is None and limits.expiration is not None and now >= limits.expiration:
        wish = _expired(limits.expiration, status)
    elif wish is None and limits.deadline is not None and now >= limits.deadline:
        state = "the operator could not look after it"
        message = message_of(Reason.DEADLINE_EXCEEDED, seconds=spec.timeout, state=state)
        wish = Ending(Phase.TIMED_OUT, Reason.DEADLINE_EXCEEDED, message)
        if spec.stops_by_force:  # not noted: what the next pass that can look makes of the deadline holds
            return wish if deleted and now >= give_up_at(spec, limits.deadline) else None
    if wish is None:
        return None
    if not begun:
        return wish
    status.withdrawal, status.withdrawal_time = wish, status.withdrawal_time or now
    if status.forced and status.scale_down_time is None:
        return given_up(spec, status, deleted=deleted)
    if status.forced and spec.after_drain == "Restart" and not deleted:
        return None  # it is to be started again
    return wish if now >= give_up_at(spec, status.withdrawal_time) else None


def not_scaled_down(status: DrainStatus) -> Ending | None:
    """Return how a complete drain ends that is deleted, and whose application cannot be scaled down."""
    if status.withdrawal is None:
        message = f"{message_of(Reason.DELETED)}; {message_of(Reason.WITHDRAWAL_TOO_LATE)}"
        status.withdrawal = Ending(Phase.DRAINED, Reason.WITHDRAWAL_TOO_LATE, message)
    status.withdrawal_time = status.withdrawal_time or status.now
    if status.now < later(status.withdrawal_time, PATIENCE_SECONDS):
        return None
    return Ending(Phase.FAILED, Reason.SCALE_DOWN_INCOMPLETE, NOT_SCALED_DOWN)


def given_up(spec: DrainSpec, status: DrainStatus, *, deleted: bool) -> Ending | None:
    """Return how a drain ends whose application cannot be stopped by force: it is tried again for as long as somebody wants the drain."""
    wish, since = status.wish, status.withdrawal_time
    if wish is None or since is None or not deleted or status.now < give_up_at(spec, since):
        return None
    return wish if status.scale_down_time is not None else replace(wish, phase=Phase.TIMED_OUT)
