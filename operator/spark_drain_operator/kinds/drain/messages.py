"""Notifications and reports of one application, as one pass reads and writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from spark_drain_store import Channel, DrainNotification, DrainReport, DrainState, Snapshot
from spark_drain_store.drains import read_notifications, read_reports
from spark_drain_store.protocol import MAX_TOTAL_BYTES

__all__ = ["Messages", "forget_notification", "interrupted", "outdated"]

_NOTHING = Snapshot(version="", entries={})
_MOST_KEPT_BYTES = MAX_TOTAL_BYTES // 2


@dataclass(kw_only=True)
class Messages:
    """Both ConfigMaps of the application as they were read.

    Parameters
    ----------
    channel
        Where they were read from.
    notifications, reports
        By drain id.
    requests_version
        Guards the next write; "" where the ConfigMap does not exist.
    malformed
        Drain id to what is wrong with its report.
    found
        Whether there is any of the two.
    """

    channel: Channel
    notifications: dict[str, DrainNotification]
    reports: dict[str, DrainReport]
    requests_version: str
    malformed: Mapping[str, str]
    found: bool = True
    _requests: Snapshot = _NOTHING
    _reports: Snapshot = _NOTHING

    @classmethod
    def read(cls, channel: Channel) -> Messages:
        """Read requests first: a report that is missing afterwards had not been written when the requests were as they are."""
        requests, reports = channel.requests.read(), channel.reports.read()
        found, sentences = read_reports(reports)
        unreadable = [key for key in reports.entries if key not in found]
        return cls(
            channel=channel,
            notifications=dict(read_notifications(requests)[0]),
            reports=dict(found),
            requests_version=requests.version,
            malformed=dict(zip(unreadable, sentences, strict=True)),
            found=bool(requests.version or reports.version),
            _requests=requests,
            _reports=reports,
        )

    def make_room(self) -> None:
        """Remove the reports of earlier drains that are `outdated`, so that the next one's finds room in the ConfigMap."""
        _forget_reports(self.channel, self._reports, {*self._requests.entries, *self.notifications})

    def write(self, notification: DrainNotification) -> None:
        """Write a notification if nobody has written the requests since they were read (`spark_drain_store.ConflictError`)."""
        changes = {notification.drain_id: notification.to_json()}
        self.requests_version = self.channel.requests.write(changes, if_version=self.requests_version)
        self.notifications[notification.drain_id] = notification

    def remove(self, drain_ids: Set[str]) -> None:
        """Remove notifications if nobody has written the requests since they were read (`spark_drain_store.ConflictError`)."""
        self.requests_version = self.channel.requests.write(dict.fromkeys(drain_ids), if_version=self.requests_version)
        for drain_id in drain_ids:
            del self.notifications[drain_id]

    def reread_requests(self) -> None:
        """Read the requests again."""
        requests = self.channel.requests.read()
        self.notifications, self.requests_version = dict(read_notifications(requests)[0]), requests.version

    def reread_reports(self) -> None:
        """Read the reports again, after a write to the requests."""
        fresh = Messages.read(self.channel)
        self.reports, self.malformed = fresh.reports, fresh.malformed


def forget_notification(channel: Channel, drain_id: str) -> None:
    """Remove the notification, and the reports of earlier drains that are `outdated`; the last report stays for people."""
    reports = channel.reports.read()  # before the requests: a report that is there now has its request there then, or is an old one's
    if drain_id not in channel.requests.read().entries:
        return
    channel.requests.write({drain_id: None})
    _forget_reports(channel, reports, {drain_id, *channel.requests.read().entries})


def _forget_reports(channel: Channel, reports: Snapshot, wanted: Set[str]) -> None:
    old = outdated(reports, wanted)
    if old:
        channel.reports.write(dict.fromkeys(old))


def outdated(reports: Snapshot, wanted: Set[str]) -> set[str]:
    """Return the reports without a request that can go.

    The last that tells of an interrupted drain stays, unless a later drain is done or it leaves too little room for the next report.
    """
    readable, _ = read_reports(reports)
    old = reports.entries.keys() - wanted
    if any(report.state is DrainState.DRAINED for drain_id, report in readable.items() if drain_id in wanted):
        return old
    told = interrupted({key: readable[key] for key in readable.keys() & old}, sorted(old - readable.keys()))
    if told is not None and len(reports.entries[told[0]].encode()) <= _MOST_KEPT_BYTES:
        old.discard(told[0])
    return old


def interrupted(reports: Mapping[str, DrainReport], malformed: Iterable[str]) -> tuple[str, str] | None:
    """Return id and state of the last drain that may be past its point of no return, and that no later one has completed.

    Whoever wrote what cannot be read does not say.
    """
    done = [report.updated_at for report in reports.values() if report.state is DrainState.DRAINED]
    known = [
        report
        for report in reports.values()
        if report.state.forward_only and not report.state.finished and all(report.updated_at > time for time in done)
    ]
    if known:
        last = max(known, key=lambda report: report.updated_at)
        return last.drain_id, str(last.state)
    return next(((drain_id, "unknown: its report cannot be read") for drain_id in malformed), None)
