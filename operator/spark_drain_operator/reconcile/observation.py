"""One pass over one drain: what was asked, what is known, what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from spark_drain_store import Channel, DrainNotification, DrainReport
from spark_drain_store.drains import read_notifications, read_reports

from spark_drain_operator.applications.protocol import Application, ApplicationAdapter
from spark_drain_operator.models.spec import DrainSpec
from spark_drain_operator.models.status import DrainStatus
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster

__all__ = ["DrainPass", "Messages"]


@dataclass(kw_only=True)
class Messages:
    """Both ConfigMaps of the application as they were read.

    Parameters
    ----------
    channel
        Where they were read from.
    notifications, reports
        By uuid.
    requests_version
        Guards the next write; "" where the ConfigMap does not exist.
    reports_exist
        Whether the agent finds a ConfigMap to write to.
    malformed
        Uuid to what is wrong with its report.
    """

    channel: Channel
    notifications: dict[str, DrainNotification]
    reports: dict[str, DrainReport]
    requests_version: str
    reports_exist: bool
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
            reports_exist=bool(reports.version),
            malformed=dict(zip(unreadable, sentences, strict=True)),
        )

    def write(self, notification: DrainNotification) -> None:
        """Write a notification if nobody has written the requests since they were read (`spark_drain_store.ConflictError`)."""
        changes = {notification.uuid: notification.to_json()}
        self.requests_version = self.channel.requests.write(changes, if_version=self.requests_version)
        self.notifications[notification.uuid] = notification

    def reread_reports(self) -> None:
        """Read the reports again, after a write to the requests."""
        fresh = Messages.read(self.channel)
        self.reports, self.malformed = fresh.reports, fresh.malformed


@dataclass(kw_only=True)
class DrainPass:
    """Everything a step needs.

    Parameters
    ----------
    cluster, settings
        The world.
    body
        The PipelineDrain as last read.
    spec, status
        The same, understood; steps change ``status``, it is written once.
    adapter
        Of the application's kind.
    application
        As seen in this pass; None where there is none.
    messages
        As read in this pass.
    """

    cluster: Cluster
    settings: Settings
    body: dict[str, Any]
    spec: DrainSpec
    status: DrainStatus
    adapter: ApplicationAdapter
    application: Application | None
    messages: Messages

    @property
    def namespace(self) -> str:
        """Of drain and application."""
        return str(self.body["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """Of the PipelineDrain."""
        return str(self.body["metadata"]["name"])

    @property
    def uuid(self) -> str:
        """Of the notification: the PipelineDrain's uid, so that a restarted operator finds what it wrote instead of writing it twice."""
        return str(self.body["metadata"]["uid"])

    @property
    def deleted(self) -> bool:
        """Whether the PipelineDrain is being deleted."""
        return bool(self.body["metadata"].get("deletionTimestamp"))

    @property
    def now(self) -> datetime:
        """Time of this pass."""
        return self.status.now

    @property
    def notification(self) -> DrainNotification | None:
        """This drain's request, as the store has it."""
        return self.messages.notifications.get(self.uuid)

    @property
    def report(self) -> DrainReport | None:
        """The agent's answer."""
        return self.messages.reports.get(self.uuid)

    def update_notification(self, **changes: Any) -> None:
        """Change fields of the notification, where it exists and they differ."""
        notification = self.notification
        if notification is not None:
            changed = replace(notification, **changes)
            if changed != notification:
                self.messages.write(changed)
