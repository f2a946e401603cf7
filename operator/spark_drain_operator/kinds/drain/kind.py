"""What the engine has to know of PipelineDrains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from spark_drain_store import DrainReport, StoreError
from spark_drain_store.kube_client import ApiError, ApiUnavailableError

from spark_drain_operator.applications import adapters, find_adapter
from spark_drain_operator.applications.protocol import current_driver
from spark_drain_operator.engine.events import Event
from spark_drain_operator.engine.kind import Kind
from spark_drain_operator.engine.outcome import Outcome
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain import progress
from spark_drain_operator.kinds.drain.events import events_of
from spark_drain_operator.kinds.drain.interrupts import INTERRUPTS
from spark_drain_operator.kinds.drain.limits import Limits, kept, limits_of, next_limit, overdue
from spark_drain_operator.kinds.drain.messages import Messages, forget_notification
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.phases import mark_pending, phase_of, settle
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason, message_of
from spark_drain_operator.kinds.drain.resource import RESOURCE
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.kinds.drain.steps import COMPLETE_STEPS, LAST_STEPS, RESTART_STEPS, STEPS
from spark_drain_operator.kinds.references import unsupported
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster

__all__ = ["DrainKind"]


class DrainKind(Kind[DrainSpec, DrainStatus, DrainPass]):
    """PipelineDrains.

    Parameters
    ----------
    cluster
        The API server.
    settings
        Of the installation.
    """

    resource = RESOURCE
    rejected = Phase.REJECTED
    reads_watches = True

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._adapters = adapters(cluster)

    def parse(self, spec: Mapping[str, Any]) -> DrainSpec:
        """See `Kind.parse`."""
        return DrainSpec.parse(spec)

    def read_status(self, body: Mapping[str, Any], now: datetime) -> DrainStatus:
        """See `Kind.read_status`."""
        return DrainStatus.read(body, now)

    def inadmissible(self, spec: DrainSpec) -> Ending | None:
        """See `Kind.inadmissible`."""
        message = unsupported(self._adapters, spec.application, "drain")
        if message:
            return Ending(Phase.REJECTED, Reason.UNSUPPORTED_APPLICATION, message)
        if spec.after_drain == "Delete" and not self._settings.allow_delete:
            return Ending(Phase.REJECTED, Reason.DELETE_NOT_ALLOWED, message_of(Reason.DELETE_NOT_ALLOWED))
        return None

    def overdue(self, body: Mapping[str, Any], spec: DrainSpec, status: DrainStatus) -> Ending | None:
        """See `Kind.overdue`."""
        return overdue(spec, status, self._report(body, spec), deleted=bool(body["metadata"].get("deletionTimestamp")))

    def _report(self, body: Mapping[str, Any], spec: DrainSpec) -> DrainReport | None:
        """Return the agent's report, None also where it cannot be read."""
        metadata, ref = body["metadata"], spec.application
        try:
            messages = Messages.read(self._cluster.channels.open(metadata["namespace"], ref.kind, ref.name))
        except (ApiError, ApiUnavailableError, StoreError):
            return None
        return messages.reports.get(metadata["uid"])

    def observe(self, body: dict[str, Any], spec: DrainSpec, status: DrainStatus) -> DrainPass:
        """See `Kind.observe`."""
        adapter = find_adapter(self._adapters, spec.application)
        assert adapter is not None
        namespace, ref = body["metadata"]["namespace"], spec.application
        # Messages first: ConfigMaps that went with their application must not look as if somebody had removed the notification.
        messages = Messages.read(self._cluster.channels.open(namespace, ref.kind, ref.name, untouched=not status.drain_id))
        try:
            application, unreadable = adapter.observe(namespace, ref.name, (status.seen_run_id, status.next_run_id)), ""
        except ApiError as error:
            application, unreadable = None, str(error)
        drain = DrainPass(
            cluster=self._cluster,
            settings=self._settings,
            body=body,
            spec=spec,
            status=status,
            adapter=adapter,
            application=application,
            messages=messages,
            unreadable=unreadable,
        )
        status.plan = spec.plan()
        if drain.report is not None and not drain.complete and status.scale_down_time is None:
            progress.fill(status, drain.report)  # later ones may be those of the next version
        if drain.application is not None and drain.complete and drain.application.uid != status.application_uid:
            drain.application = None  # the next one of that name is not ours to stop
        if drain.application is not None:
            status.application_state = drain.application.state
        drain.see_driver()
        return drain

    def steps(self, current: DrainPass) -> Iterable[Callable[[DrainPass], Outcome]]:
        """See `Kind.steps`."""
        application = current.application
        if current.complete and current.status.restart_generation:
            return RESTART_STEPS
        gone = application is None and not current.unreadable
        if current.notification is None and application is not None and application.suspend_requested:
            gone = current.status.scale_down_time is not None  # so the driver is ending, and nothing has to hold it any more
        if current.complete:
            return LAST_STEPS if gone else (*INTERRUPTS, *COMPLETE_STEPS)
        return (*INTERRUPTS, *STEPS)

    def was_begun(self, status: DrainStatus) -> bool:
        """See `Kind.was_begun`."""
        return bool(status.drain_id)

    def begun(self, current: DrainPass) -> bool:
        """See `Kind.begun`."""
        return current.begun

    def stored(self, current: DrainPass, body: dict[str, Any]) -> None:
        """See `Kind.stored`."""
        current.body, current.confirmed = body, True

    def settled(self, current: DrainPass, ending: Ending) -> bool:
        """See `Kind.settled`; a complete drain needs neither notification nor report to be Drained."""
        return current.complete and ending.phase is Phase.DRAINED

    def mark(self, current: DrainPass, message: str, *, ends: bool) -> None:
        """See `Kind.mark`."""
        status = current.status
        status.phase = phase_of(current.spec, status, current.report)
        mark_pending(status, message)
        malformed = current.messages.malformed.get(current.drain_id)
        if malformed is not None and not ends:
            status.set(ConditionType.STALLED, "True", Reason.MALFORMED_REPORT, malformed)

    def seconds_to_limit(self, current: DrainPass) -> float | None:
        """See `Kind.seconds_to_limit`; a drain that its agent is to withdraw has none, nor has one that was done in time."""
        limits = limits_of(current.spec, current.status, current_driver(current.application), current.report)
        wish = current.status.withdrawal
        if wish is not None and wish.reason == Reason.WITHDRAWAL_TOO_LATE:
            limits = Limits(deadline=limits.deadline)
        elif wish is not None:
            return None  # the steps say when to look again
        if kept(limits, current.report, current.now):
            return None
        return next_limit(limits, current.now)

    def forget(self, body: Mapping[str, Any]) -> None:
        """See `Kind.forget`."""
        metadata, ref = body["metadata"], body["spec"]["applicationRef"]
        channel = self._cluster.channels.open(metadata["namespace"], ref["kind"], ref["name"])
        if metadata["uid"] in channel.requests.read().entries:
            forget_notification(channel, metadata["uid"])
        else:
            with self._cluster.cache.bypassed():
                forget_notification(channel, metadata["uid"])

    def conclude(self, status: DrainStatus, ending: Ending) -> None:
        """See `Kind.conclude`."""
        settle(status, ending)

    def events(self, before: DrainStatus, after: DrainStatus) -> list[Event]:
        """See `Kind.events`."""
        return events_of(before, after)
