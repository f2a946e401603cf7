"""Notifications and reports of one application, as one pass reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_drain_store import Channel, DrainNotification, DrainReport, Snapshot
from spark_drain_store.drains import read_notifications, read_reports

__all__ = ["Messages", "forget_notification", "make_room"]


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
    """

    channel: Channel
    notifications: dict[str, DrainNotification]
    reports: dict[str, DrainReport]
    requests_version: str
    malformed: Mapping[str, str]

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
        )

    @property
    def old_reports(self) -> bool:
        """Whether there are reports of drains that nobody asks for any more."""
        return not {*self.reports, *self.malformed} <= self.notifications.keys()

    def write(self, notification: DrainNotification) -> None:
        """Write a notification if nobody has written the requests since they were read (`spark_drain_store.ConflictError`)."""
        changes = {notification.drain_id: notification.to_json()}
        self.requests_version = self.channel.requests.write(changes, if_version=self.requests_version)
        self.notifications[notification.drain_id] = notification

    def reread_reports(self) -> None:
        """Read the reports again, after a write to the requests."""
        fresh = Messages.read(self.channel)
        self.reports, self.malformed = fresh.reports, fresh.malformed


def forget_notification(channel: Channel, drain_id: str) -> None:
    """Remove the notification, and the reports of earlier drains; the last report stays for people."""
    reports = channel.reports.read()  # before the requests: a report that is there now has its request there then, or is an old one's
    requests = channel.requests.read()
    if drain_id not in requests.entries:
        return
    channel.requests.write({drain_id: None})
    _forget_reports(channel, reports, {drain_id, *requests.entries})


def make_room(channel: Channel) -> None:
    """Remove the reports of earlier drains, so that the next one's finds room in the ConfigMap."""
    reports = channel.reports.read()
    _forget_reports(channel, reports, set(channel.requests.read().entries))


def _forget_reports(channel: Channel, reports: Snapshot, wanted: set[str]) -> None:
    old = {key: None for key in reports.entries if key not in wanted}
    if old:
        channel.reports.write(old)
