"""What the engine has to know of ExecutorPlacements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from spark_drain_store.kube_client import ApiError
from spark_drain_store.placements import delete_placement

from spark_drain_operator.applications import adapters, find_adapter
from spark_drain_operator.applications.protocol import ApplicationRef
from spark_drain_operator.engine.events import Event, events_of
from spark_drain_operator.engine.kind import Kind
from spark_drain_operator.engine.outcome import Outcome
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.placement.decide import STOP_SECONDS, give_up_at, phase_of
from spark_drain_operator.kinds.placement.observation import PlacementPass, placements_of
from spark_drain_operator.kinds.placement.reasons import ConditionType, Phase, Reason, message_of
from spark_drain_operator.kinds.placement.resource import RESOURCE
from spark_drain_operator.kinds.placement.spec import PlacementSpec
from spark_drain_operator.kinds.placement.status import PlacementStatus
from spark_drain_operator.kinds.placement.steps import STEPS
from spark_drain_operator.kinds.placement.steps.withdraw import wish_of
from spark_drain_operator.kinds.references import unsupported
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster

__all__ = ["PlacementKind"]

_WARNINGS = frozenset({Reason.APPLICATION_UNREADABLE, Reason.MALFORMED_RESPONSE, Reason.RECONCILE_FAILED, Reason.AGENT_NOT_RESPONDING})


class PlacementKind(Kind[PlacementSpec, PlacementStatus, PlacementPass]):
    """ExecutorPlacements.

    Parameters
    ----------
    cluster
        The API server.
    settings
        Of the installation.
    """

    resource = RESOURCE
    rejected = Phase.REJECTED

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._adapters = adapters(cluster)

    def parse(self, spec: Mapping[str, Any]) -> PlacementSpec:
        """See `Kind.parse`."""
        return PlacementSpec.parse(spec)

    def read_status(self, body: Mapping[str, Any], now: datetime) -> PlacementStatus:
        """See `Kind.read_status`."""
        return PlacementStatus.read(body, now)

    def inadmissible(self, spec: PlacementSpec) -> Ending | None:
        """See `Kind.inadmissible`."""
        message = unsupported(self._adapters, spec.application, "placement")
        return Ending(Phase.REJECTED, Reason.UNSUPPORTED_APPLICATION, message) if message else None

    def overdue(self, body: Mapping[str, Any], spec: PlacementSpec, status: PlacementStatus) -> Ending | None:
        """See `Kind.overdue`; one that is wanted is tried again, since its executor runs on."""
        wish = wish_of(deleted=bool(body["metadata"].get("deletionTimestamp")), cancel=spec.cancel)
        if wish is None:
            return None
        if self.was_begun(status):
            status.withdrawal_reason, status.withdrawal_time = str(wish), status.withdrawal_time or status.now
            if status.now < give_up_at(status.withdrawal_time, spec.acknowledge_timeout + STOP_SECONDS, None):
                return None
        return Ending(Phase.CANCELLED, wish, message_of(wish))

    def observe(self, body: dict[str, Any], spec: PlacementSpec, status: PlacementStatus) -> PlacementPass:
        """See `Kind.observe`."""
        adapter = find_adapter(self._adapters, spec.application)
        assert adapter is not None
        namespace, ref = body["metadata"]["namespace"], spec.application
        placement = PlacementPass(
            cluster=self._cluster,
            settings=self._settings,
            body=body,
            spec=spec,
            status=status,
            adapter=adapter,
            channel=placements_of(self._cluster, namespace, ref),
        )
        placement.read_placements()
        try:
            placement.application = adapter.observe(namespace, ref.name)
        except ApiError as error:
            placement.unreadable = str(error)
        status.executor_id = status.executor_id or spec.executor_id
        return placement

    def steps(self, current: PlacementPass) -> Iterable[Callable[[PlacementPass], Outcome]]:  # noqa: ARG002
        """See `Kind.steps`."""
        return STEPS

    def was_begun(self, status: PlacementStatus) -> bool:
        """See `Kind.was_begun`."""
        return bool(status.request_id)

    def begun(self, current: PlacementPass) -> bool:
        """See `Kind.begun`."""
        return current.begun

    def stored(self, current: PlacementPass, body: dict[str, Any]) -> None:
        """See `Kind.stored`."""
        current.body = body

    def settled(self, current: PlacementPass, ending: Ending) -> bool:  # noqa: ARG002
        """See `Kind.settled`; only the response says how a placement has ended."""
        return False

    def mark(self, current: PlacementPass, message: str, *, ends: bool) -> None:  # noqa: ARG002
        """See `Kind.mark`."""
        status, response = current.status, current.response
        status.phase = phase_of(response) or status.phase
        status.status_code = str(current.placements.status(current.placement_id)) if current.begun else ""
        for type_ in (ConditionType.ACCEPTED, ConditionType.ACKNOWLEDGED):
            if status.conditions.get(type_) is None:
                status.set(type_, "Unknown", Reason.NOT_YET, message)

    def seconds_to_limit(self, current: PlacementPass) -> float | None:  # noqa: ARG002
        """See `Kind.seconds_to_limit`; the steps say when to look again."""
        return None

    def forget(self, body: Mapping[str, Any]) -> None:
        """See `Kind.forget`."""
        metadata, ref = body["metadata"], body["spec"]["applicationRef"]
        reference = ApplicationRef(ref["apiVersion"], ref["kind"], ref["name"])
        delete_placement(placements_of(self._cluster, metadata["namespace"], reference), metadata["uid"])

    def conclude(self, status: PlacementStatus, ending: Ending) -> None:
        """See `Kind.conclude`."""
        phase = ending.phase
        if phase is Phase.REJECTED or status.conditions.get(ConditionType.ACCEPTED) is None:
            status.set(ConditionType.ACCEPTED, "True" if phase.successful else "False", str(ending.reason), ending.message)

    def events(self, before: PlacementStatus, after: PlacementStatus) -> list[Event]:
        """See `Kind.events`."""
        return events_of(before, after, _WARNINGS)
