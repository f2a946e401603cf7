"""One pass over one placement: what was asked, what is known, what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from spark_drain_store import Channel
from spark_drain_store.placement_messages import PlacementRequest, PlacementResponse
from spark_drain_store.placements import Placements, read_placement_requests, read_placement_responses
from spark_drain_store.topics import PLACEMENT

from spark_drain_operator.applications.protocol import Application, ApplicationAdapter, ApplicationRef
from spark_drain_operator.clock import parse_time
from spark_drain_operator.kinds.placement.spec import PlacementSpec
from spark_drain_operator.kinds.placement.status import PlacementStatus
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster

__all__ = ["PlacementPass", "placements_of"]


def placements_of(cluster: Cluster, namespace: str, ref: ApplicationRef) -> Channel:
    """Return the channel of an application's placements."""
    return cluster.channels.open(namespace, ref.kind, ref.name).about(PLACEMENT)


@dataclass(kw_only=True)
class PlacementPass:
    """Everything a step needs.

    Parameters
    ----------
    cluster, settings
        The world.
    body
        The ExecutorPlacement as last read.
    spec, status
        The same, understood; steps change ``status``, it is written once.
    adapter
        Of the application's kind.
    channel
        Of the application's placements.
    application
        As seen in this pass; None where there is none.
    unreadable
        Why the application could not be read, or "".
    placements
        As read in this pass.
    requests_version
        Guards the next write of a request.
    """

    cluster: Cluster
    settings: Settings
    body: dict[str, Any]
    spec: PlacementSpec
    status: PlacementStatus
    adapter: ApplicationAdapter
    channel: Channel
    application: Application | None = None
    unreadable: str = ""
    placements: Placements = field(default_factory=lambda: Placements({}, {}, {}))
    requests_version: str = ""

    @property
    def namespace(self) -> str:
        """Of placement and application."""
        return str(self.body["metadata"]["namespace"])

    @property
    def placement_id(self) -> str:
        """Of the request: the object's uid, so that a restarted operator finds what it wrote instead of writing it twice."""
        return str(self.body["metadata"]["uid"])

    @property
    def now(self) -> datetime:
        """Time of this pass."""
        return self.status.now

    @property
    def created(self) -> datetime:
        """When the ExecutorPlacement was created."""
        return parse_time(self.body["metadata"]["creationTimestamp"])

    @property
    def deleted(self) -> bool:
        """Whether the ExecutorPlacement is being deleted."""
        return bool(self.body["metadata"].get("deletionTimestamp"))

    @property
    def request(self) -> PlacementRequest | None:
        """This placement's request, as the store has it."""
        return self.placements.requests.get(self.placement_id)

    @property
    def response(self) -> PlacementResponse | None:
        """The agent's answer."""
        return self.placements.responses.get(self.placement_id)

    @property
    def begun(self) -> bool:
        """Whether a request was written."""
        return self.request is not None or bool(self.status.request_id)

    def read_placements(self) -> None:
        """Read requests first: a response that is missing afterwards had not been written when the requests were as they are."""
        snapshot = self.channel.requests.read()
        requests, _ = read_placement_requests(snapshot)
        responses, malformed = read_placement_responses(self.channel.reports.read())
        self.placements, self.requests_version = Placements(requests, responses, malformed), snapshot.version

    def write(self, request: PlacementRequest) -> None:
        """Write the request if nobody has written the requests since they were read (`spark_drain_store.ConflictError`)."""
        self.requests_version = self.channel.requests.write({request.placement_id: request.to_json()}, if_version=self.requests_version)
        self.placements = Placements(
            {**self.placements.requests, request.placement_id: request}, self.placements.responses, self.placements.malformed
        )
