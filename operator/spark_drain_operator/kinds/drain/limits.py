"""The times at which patience ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from spark_drain_store import DrainReport
from spark_drain_store.channel import config_map_names

from spark_drain_operator.clock import format_time
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import Phase, Reason, message_of
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.storage.pods import DriverPod

__all__ = ["Limits", "acknowledge_by", "limits_of", "next_limit", "reached"]

_SCALE_DOWN_GRACE = timedelta(seconds=120)  # a drain that is complete does not fail on the pods' grace period


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
    return max(notification_time, driver.running_since) + timedelta(seconds=spec.acknowledge_timeout)


def limits_of(spec: DrainSpec, status: DrainStatus, driver: DriverPod | None, report: DrainReport | None) -> Limits:
    """Return the limits that are in force."""
    if status.start_time is None:
        acknowledgement = acknowledge_by(spec, status.notification_time, driver) if report is None else None
        return Limits(expiration=spec.expiration, acknowledgement=acknowledgement)
    deadline = status.start_time + timedelta(seconds=spec.timeout)
    if status.scale_down_time is not None:
        deadline = max(deadline, status.scale_down_time + _SCALE_DOWN_GRACE)
    return Limits(deadline=deadline)


def next_limit(limits: Limits, now: datetime) -> float | None:
    """Return the seconds until the next limit, or None."""
    times = [time for time in (limits.expiration, limits.acknowledgement, limits.deadline) if time is not None]
    return max(0.0, (min(times) - now).total_seconds()) if times else None


def reached(limits: Limits, drain: DrainPass) -> Ending | None:
    """Return the ending that a passed limit asks for."""
    now, spec = drain.now, drain.spec
    if limits.deadline is not None and now >= limits.deadline:
        phase = Phase.FORCE_STOPPED if spec.on_timeout == "ForceStop" else Phase.TIMED_OUT
        report = drain.report
        state = f"the agent was at {report.state}: {report.message or 'no message'}" if report else "the agent has not responded"
        return Ending(phase, Reason.DEADLINE_EXCEEDED, message_of(Reason.DEADLINE_EXCEEDED, seconds=spec.timeout, state=state))
    if limits.expiration is not None and now >= limits.expiration:
        return Ending(Phase.EXPIRED, Reason.EXPIRED, message_of(Reason.EXPIRED, time=format_time(limits.expiration)))
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
