"""One pass over one drain: what was asked, what is known, what was seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from spark_drain_store import DrainNotification, DrainReport, DrainState

from spark_drain_operator.applications.protocol import Activity, Application, ApplicationAdapter, current_driver
from spark_drain_operator.clock import later
from spark_drain_operator.engine.outcome import StaleReadsError
from spark_drain_operator.kinds.drain.messages import Messages
from spark_drain_operator.kinds.drain.reasons import ConditionType
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.pods import DriverPod

__all__ = ["ACTS_WITHIN_SECONDS", "DrainPass"]

ACTS_WITHIN_SECONDS = 60
"""How long the application's own operator may take to act on a change of its spec."""
_PROGRESS_SECONDS = 1.0
"""Most drains are done in a second or two."""
_APPROVED = "approved; the agent has not begun to carry out the plan"
_EARLIER = "earlier"
"""In the place of the digest of a spec that nobody has seen."""


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
    unreadable
        Why the application could not be read, or "".
    confirmed
        Whether a write in this pass has shown that nobody has changed the PipelineDrain since the rest was read.
    unkept
        Why the end offsets are not in a ConfigMap of their own although it goes on, or "".
    """

    cluster: Cluster
    settings: Settings
    body: dict[str, Any]
    spec: DrainSpec
    status: DrainStatus
    adapter: ApplicationAdapter
    application: Application | None
    messages: Messages
    unreadable: str = ""
    confirmed: bool = False
    unkept: str = ""

    def needs_fresh_reads(self) -> None:
        """Begin the pass anew with everything asked from the API server, unless this is such a one."""
        if self.cluster.cache.answered:
            raise StaleReadsError

    def reread_messages(self) -> None:
        """Ask the API server for the requests."""
        with self.cluster.cache.bypassed():
            self.messages.reread_requests()

    @property
    def namespace(self) -> str:
        """Of drain and application."""
        return str(self.body["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """Of the PipelineDrain."""
        return str(self.body["metadata"]["name"])

    @property
    def drain_id(self) -> str:
        """Of the notification: the PipelineDrain's uid, so that a restarted operator finds what it wrote instead of writing it twice."""
        return str(self.body["metadata"]["uid"])

    @property
    def deleted(self) -> bool:
        """Whether the PipelineDrain is being deleted."""
        return bool(self.body["metadata"].get("deletionTimestamp"))

    @property
    def unhurried(self) -> float:
        """Seconds by which the agent's progress may be stored late; not where the stored status does not say when the drain has begun."""
        return _PROGRESS_SECONDS if (self.body.get("status") or {}).get("startTime") else 0.0

    @property
    def complete(self) -> bool:
        """Whether nothing of the application is needed any more."""
        return self.status.conditions.is_true(ConditionType.EXECUTORS_DRAINED)

    @property
    def now(self) -> datetime:
        """Time of this pass."""
        return self.status.now

    @property
    def notification(self) -> DrainNotification | None:
        """This drain's request, as the store has it."""
        return self.messages.notifications.get(self.drain_id)

    @property
    def report(self) -> DrainReport | None:
        """The agent's answer."""
        return self.messages.reports.get(self.drain_id)

    @property
    def agent_message(self) -> str:
        """What the agent says; its word that it waits for an approval is out of date once that is given."""
        if self.report is None:
            return ""
        return _APPROVED if self.report.awaits_approval and not self.spec.awaits_approval else self.report.message

    @property
    def forward_only(self) -> bool:
        """Whether the agent is known to be past the point of no return; the report may be gone since."""
        known = self.status.conditions.is_true(ConditionType.SOURCES_STOPPED)
        return known or (self.report is not None and self.report.state.forward_only)

    @property
    def may_be_committed(self) -> bool:
        """Whether the agent is, or may be, past the point of no return: whoever wrote what cannot be read does not say."""
        return self.forward_only or self.malformed

    @property
    def begun(self) -> bool:
        """Whether a request was written."""
        return self.notification is not None or bool(self.status.drain_id)

    @property
    def changed(self) -> bool:
        """Whether somebody has applied another spec than the drained driver was started with."""
        application, digest = self.application, self.status.spec_digest
        return application is not None and not application.deleted and digest not in ("", application.spec_digest)

    @property
    def perhaps_changed(self) -> bool:
        """Whether the application was changed before the first look, and it is not known yet whether that has meant anything."""
        return self.status.spec_digest == _EARLIER

    @property
    def resumed(self) -> bool:
        """Whether another version is meant to run."""
        return self.changed and self.application is not None and not self.application.suspend_requested

    @property
    def drained_driver(self) -> DriverPod | None:
        """The driver that is drained, until it has ended."""
        drivers = self.application.drivers if self.application is not None else ()
        return next((driver for driver in drivers if driver.alive and driver.run_id == self.status.seen_run_id), None)

    @property
    def replaced(self) -> bool:
        """Whether the application is a next version by now: its own operator has acted on the changed spec."""
        return bool(self.status.next_run_id) or (self.resumed and self.drained_driver is None)

    def see_driver(self) -> None:
        """Remember what the driver that lives now was started with; one that the drain is not for is a next version's."""
        application, status = self.application, self.status
        driver = current_driver(application)
        if application is not None and driver is not None and self._meant_nothing(application, driver):
            status.spec_digest = application.spec_digest
        if application is not None and driver is not None and driver.run_id not in (status.seen_run_id, status.next_run_id):
            if self._is_next(application, driver):
                status.next_run_id = driver.run_id
            else:
                digest = _EARLIER if self._started_earlier(application, driver) else application.spec_digest
                status.seen_run_id, status.spec_digest, status.next_run_id = driver.run_id, digest, ""
        digest = application.spec_digest if application is not None and self.resumed else ""
        # Each change gives the application's own operator the time to act on it.
        if digest != status.changed_digest or (digest and status.changed_time is None):
            since = application.spec_changed if application is not None and self.perhaps_changed else None
            status.changed_digest, status.changed_time = digest, (since or self.now) if digest else None

    def _started_earlier(self, application: Application, driver: DriverPod) -> bool:
        """Whether the spec was changed after the driver was made, and the application's own operator may not have acted on that yet."""
        changed = application.spec_changed
        return changed is not None and driver.created < changed and self.now < later(changed, ACTS_WITHIN_SECONDS)

    def _acted_by(self, application: Application) -> datetime | None:
        """Return until when the application's own operator may act on a change that was there at the first look; None: on a later one."""
        status = self.status
        if not self.perhaps_changed or status.changed_time is None or application.spec_digest != status.changed_digest:
            return None
        return later(status.changed_time, ACTS_WITHIN_SECONDS)

    def _meant_nothing(self, application: Application, driver: DriverPod) -> bool:
        """Whether the driver has outlived a change, as that of a label, so that it was started with the present spec."""
        acted_by = self._acted_by(application)
        settled = driver.run_id == self.status.seen_run_id and application.activity is Activity.RUNNING
        return settled and acted_by is not None and self.now >= acted_by

    def _is_next(self, application: Application, driver: DriverPod) -> bool:
        """Whether a driver was started with another spec than the one the request was for, or is not the only run that is meant.

        One of the same spec goes on with the drain; what a run has begun to commit, any run of its spec completes.
        """
        status, report = self.status, self.report
        drained = report is not None and (report.state is DrainState.DRAINED or report.drained_at is not None)
        over = drained or self.complete or status.forced or status.scale_down_time is not None
        if over and status.next_run_id:
            return True  # also when its change was reverted
        # The request of an operator that was killed before it had noted what it was for.
        meant = self.spec.run_id or (not status.spec_digest and self.notification is not None and self.notification.run_id)
        other_run = bool(meant) and driver.run_id not in ("", meant) and not self.may_be_committed
        acted_by = self._acted_by(application)
        changed = self.changed and (acted_by is None or driver.created < acted_by)
        return self.begun and (changed or other_run)

    @property
    def malformed(self) -> bool:
        """Whether there is a report of this drain that cannot be read."""
        return self.drain_id in self.messages.malformed

    def update_notification(self, **changes: Any) -> None:
        """Change fields of the notification, where it exists and they differ."""
        notification = self.notification
        if notification is not None:
            changed = replace(notification, **changes)
            if changed != notification:
                self.messages.write(changed)
