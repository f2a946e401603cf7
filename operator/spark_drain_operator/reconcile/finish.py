"""The end: notification away, conditions final, finalizer off, object deleted after its time."""

from __future__ import annotations

from datetime import datetime, timedelta

from spark_drain_store import Channel
from spark_drain_store.drains import read_notifications

from spark_drain_operator.models.reasons import ConditionType, Phase
from spark_drain_operator.models.spec import DrainSpec
from spark_drain_operator.models.status import DrainStatus, Ending

__all__ = ["conclude", "forget_notification", "seconds_to_live"]


def forget_notification(channel: Channel, uuid: str) -> None:
    """Remove the notification, and the reports of earlier drains; the last report stays for people."""
    requests = channel.requests.read()
    if uuid in requests.entries:
        channel.requests.write({uuid: None})
    wanted = {uuid, *read_notifications(requests)[0]}
    old = {key: None for key in channel.reports.read().entries if key not in wanted}
    if old:
        channel.reports.write(old)


def conclude(status: DrainStatus, ending: Ending) -> None:
    """Make every condition final."""
    phase, reason, message = ending.phase, str(ending.reason), ending.message
    status.phase, status.message, status.outcome = phase, message, None
    status.completion_time = status.now
    if phase in (Phase.REJECTED, Phase.NOTHING_TO_DRAIN, Phase.EXPIRED) or status.conditions.get(ConditionType.ACCEPTED) is None:
        status.set(ConditionType.ACCEPTED, "True" if phase.successful else "False", reason, message)
    status.set(ConditionType.SUCCEEDED, "True" if phase.successful else "False", reason, message)
    status.set(ConditionType.FINISHED, "True", phase, message)
    status.set(ConditionType.RECONCILING, "False", phase, "")
    status.set(ConditionType.STALLED, "False" if phase.successful else "True", reason, "" if phase.successful else message)


def seconds_to_live(spec: DrainSpec, completion: datetime | None, now: datetime) -> float | None:
    """Return after how many seconds the finished object is to be deleted; None is never."""
    if spec.ttl is None or completion is None:
        return None
    return max(0.0, (completion + timedelta(seconds=spec.ttl) - now).total_seconds())
