"""Reading and writing whole messages over a `Channel`; what cannot be read is listed, never fatal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from spark_drain_store.channel import Channel
from spark_drain_store.compare_and_set import compare_and_set
from spark_drain_store.messages import DrainNotification, DrainReport
from spark_drain_store.options import UnsupportedOptionError
from spark_drain_store.protocol import Snapshot

__all__ = [
    "DrainAlreadyActiveError",
    "Drains",
    "approve_notification",
    "read_notifications",
    "read_reports",
    "withdraw_notification",
    "write_notification",
]


class DrainAlreadyActiveError(Exception):
    """Another drain of the same application has not finished; ``drain_id`` names it."""

    def __init__(self, drain_id: str) -> None:
        super().__init__(f"drain {drain_id} of this application is active: wait for its end, or withdraw it (a plan ends so)")
        self.drain_id = drain_id


@dataclass(frozen=True)
class Drains:
    """All drains of one application.

    Parameters
    ----------
    notifications, reports
        By drain id.
    malformed
        What could not be read, one sentence per entry.
    """

    notifications: Mapping[str, DrainNotification]
    reports: Mapping[str, DrainReport]
    malformed: tuple[str, ...]

    def active(self) -> DrainNotification | None:
        """Return the notification whose drain has not finished, or None; one that was withdrawn before anybody saw it is over."""
        for drain_id, notification in self.notifications.items():
            report = self.reports.get(drain_id)
            if (report is None and not notification.withdrawn) or (report is not None and not report.state.finished):
                return notification
        return None

    @classmethod
    def read(cls, channel: Channel) -> Drains:
        """Read both stores of a channel."""
        notifications, bad_notifications = read_notifications(channel.requests.read())
        reports, bad_reports = read_reports(channel.reports.read())
        return cls(notifications, reports, bad_notifications + bad_reports)


def read_notifications(snapshot: Snapshot) -> tuple[dict[str, DrainNotification], tuple[str, ...]]:
    """Return the readable notifications by drain id, oldest first, and a sentence for each unreadable entry."""
    found, bad = [], []
    for key, text in snapshot.entries.items():
        try:
            found.append(DrainNotification.from_json(key, text))
        except ValueError as error:
            bad.append(str(error))
    return {item.drain_id: item for item in sorted(found, key=lambda item: (item.created_at, item.drain_id))}, tuple(bad)


def read_reports(snapshot: Snapshot) -> tuple[dict[str, DrainReport], tuple[str, ...]]:
    """Return the readable reports by drain id and a sentence for each unreadable entry."""
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
        What the store holds now: for a repeated call the earlier notification of the same drain.

    Raises
    ------
    DrainAlreadyActiveError
        Another drain has not finished.
    StoreError
        The store could not be written.
    """
    held = notification

    def change(requests: Snapshot) -> dict[str, str | None]:
        nonlocal held
        notifications, _bad = read_notifications(requests)
        held = notifications.get(notification.drain_id, notification)
        if held is not notification:
            return {}
        reports, _bad = read_reports(channel.reports.read())
        active = Drains(notifications, reports, ()).active()
        if active is not None:
            raise DrainAlreadyActiveError(active.drain_id)
        return {notification.drain_id: notification.to_json()}

    compare_and_set(channel.requests, change)
    return held


def withdraw_notification(channel: Channel, drain_id: str) -> DrainNotification | None:
    """Mark a notification as withdrawn and return it; None when there is no such notification."""
    return _replaced(channel, drain_id, partial(replace, withdrawn=True))


def approve_notification(channel: Channel, drain_id: str) -> DrainNotification | None:
    """Mark a notification as approved and return it; None when there is no such notification.

    Raises
    ------
    UnsupportedOptionError
        The drain does not wait for an approval.
    """

    def approved(notification: DrainNotification) -> DrainNotification:
        execution = notification.options.get("execution", "Immediate")
        if execution != "AfterApproval":
            raise UnsupportedOptionError(f"drain {drain_id} has execution {execution}, and only AfterApproval waits for an approval")
        return replace(notification, approved=True)

    return _replaced(channel, drain_id, approved)


def _replaced(channel: Channel, drain_id: str, replacement: Callable[[DrainNotification], DrainNotification]) -> DrainNotification | None:
    written: DrainNotification | None = None

    def change(requests: Snapshot) -> dict[str, str | None]:
        nonlocal written
        found = read_notifications(requests)[0].get(drain_id)
        written = None if found is None else replacement(found)
        return {} if written is None else {drain_id: written.to_json()}

    compare_and_set(channel.requests, change)
    return written
