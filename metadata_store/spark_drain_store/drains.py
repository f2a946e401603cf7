"""Reading and writing whole messages over a `Channel`; what cannot be read is listed, never fatal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from spark_drain_store.channel import Channel
from spark_drain_store.messages import DrainNotification, DrainReport
from spark_drain_store.protocol import ConflictError, Snapshot

__all__ = ["DrainAlreadyActiveError", "Drains", "read_notifications", "read_reports", "withdraw_notification", "write_notification"]

_ATTEMPTS = 10


class DrainAlreadyActiveError(Exception):
    """Another drain of the same application has not finished; ``uuid`` names it."""

    def __init__(self, uuid: str) -> None:
        super().__init__(f"drain {uuid} of this application is active: wait for its end or withdraw it")
        self.uuid = uuid


@dataclass(frozen=True)
class Drains:
    """All drains of one application.

    Parameters
    ----------
    notifications, reports
        By uuid.
    malformed
        What could not be read, one sentence per entry.
    """

    notifications: Mapping[str, DrainNotification]
    reports: Mapping[str, DrainReport]
    malformed: tuple[str, ...]

    def active(self) -> DrainNotification | None:
        """Return the notification whose drain has not finished, or None."""
        for uuid, notification in self.notifications.items():
            report = self.reports.get(uuid)
            if report is None or not report.state.finished:
                return notification
        return None

    @classmethod
    def read(cls, channel: Channel) -> Drains:
        """Read both stores of a channel."""
        notifications, bad_notifications = read_notifications(channel.requests.read())
        reports, bad_reports = read_reports(channel.reports.read())
        return cls(notifications, reports, bad_notifications + bad_reports)


def read_notifications(snapshot: Snapshot) -> tuple[dict[str, DrainNotification], tuple[str, ...]]:
    """Return the readable notifications by uuid, oldest first, and a sentence for each unreadable entry."""
    found, bad = [], []
    for key, text in snapshot.entries.items():
        try:
            found.append(DrainNotification.from_json(key, text))
        except ValueError as error:
            bad.append(str(error))
    return {item.uuid: item for item in sorted(found, key=lambda item: (item.created_at, item.uuid))}, tuple(bad)


def read_reports(snapshot: Snapshot) -> tuple[dict[str, DrainReport], tuple[str, ...]]:
    """Return the readable reports by uuid and a sentence for each unreadable entry."""
    found, bad = {}, []
    for key, text in snapshot.entries.items():
        try:
            found[key] = DrainReport.from_json(key, text)
        except ValueError as error:
            bad.append(str(error))
    return found, tuple(bad)


def write_notification(channel: Channel, notification: DrainNotification) -> DrainNotification:
    """Write a notification unless another drain is active; writing the same one again changes nothing.

    The version-guarded write is the lock of "one active drain per application": of two writers the first wins.

    Returns
    -------
    DrainNotification
        What the store holds now: for a repeated call the earlier notification of the same uuid.

    Raises
    ------
    DrainAlreadyActiveError
        Another drain has not finished.
    StoreError
        The store could not be written.
    """
    for _ in range(_ATTEMPTS):
        requests = channel.requests.read()
        notifications, _bad = read_notifications(requests)
        if notification.uuid in notifications:
            return notifications[notification.uuid]
        reports, _bad = read_reports(channel.reports.read())
        active = Drains(notifications, reports, ()).active()
        if active is not None:
            raise DrainAlreadyActiveError(active.uuid)
        try:
            channel.requests.write({notification.uuid: notification.to_json()}, if_version=requests.version)
        except ConflictError:
            continue
        return notification
    raise ConflictError("the metadata store is written by others all the time: try again")


def withdraw_notification(channel: Channel, uuid: str) -> DrainNotification | None:
    """Mark a notification as withdrawn and return it; None when there is no such notification."""
    for _ in range(_ATTEMPTS):
        requests = channel.requests.read()
        notifications, _bad = read_notifications(requests)
        if uuid not in notifications:
            return None
        withdrawn = replace(notifications[uuid], withdrawn=True)
        try:
            channel.requests.write({uuid: withdrawn.to_json()}, if_version=requests.version)
        except ConflictError:
            continue
        return withdrawn
    raise ConflictError("the metadata store is written by others all the time: try again")
