"""The placement requests and responses of one application (SEP-22's ContainerPlacementMetadataStore)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from spark_drain_store.channel import Channel
from spark_drain_store.compare_and_set import compare_and_set
from spark_drain_store.placement_messages import PlacementRequest, PlacementResponse, PlacementStatus
from spark_drain_store.protocol import Snapshot

__all__ = [
    "Placements",
    "delete_all_placements",
    "delete_placement",
    "delete_placement_request",
    "delete_placement_response",
    "read_placement_request",
    "read_placement_requests",
    "read_placement_response",
    "read_placement_responses",
    "withdraw_placement",
    "write_placement_request",
    "write_placement_response",
]


@dataclass(frozen=True)
class Placements:
    """All placements of one application.

    Parameters
    ----------
    requests, responses
        By placement id, requests oldest first.
    malformed
        What could not be read, one sentence per entry, by key.
    """

    requests: Mapping[str, PlacementRequest]
    responses: Mapping[str, PlacementResponse]
    malformed: Mapping[str, str]

    def status(self, placement_id: str) -> PlacementStatus:
        """Return how far a placement is; one without a response is CREATED."""
        response = self.responses.get(placement_id)
        return PlacementStatus.CREATED if response is None else response.status

    @classmethod
    def read(cls, channel: Channel) -> Placements:
        """Read both stores of a channel of the topic `spark_drain_store.topics.PLACEMENT`."""
        requests, bad_requests = read_placement_requests(channel.requests.read())
        responses, bad_responses = read_placement_responses(channel.reports.read())
        return cls(requests, responses, {**bad_requests, **bad_responses})


def read_placement_requests(snapshot: Snapshot) -> tuple[dict[str, PlacementRequest], dict[str, str]]:
    """Return the readable requests by placement id, oldest first, and a sentence for each unreadable entry by its key."""
    found, bad = [], {}
    for key, text in snapshot.entries.items():
        try:
            found.append(PlacementRequest.from_json(key, text))
        except ValueError as error:
            bad[key] = str(error)
    return {item.placement_id: item for item in sorted(found, key=lambda item: (item.created_at, item.placement_id))}, bad


def read_placement_responses(snapshot: Snapshot) -> tuple[dict[str, PlacementResponse], dict[str, str]]:
    """Return the readable responses by placement id and a sentence for each unreadable entry by its key."""
    found, bad = {}, {}
    for key, text in snapshot.entries.items():
        try:
            found[key] = PlacementResponse.from_json(key, text)
        except ValueError as error:
            bad[key] = str(error)
    return found, bad


def write_placement_request(
    channel: Channel,
    executor_id: str,
    destination_host: str,
    *,
    run_id: str | None = None,
    node_selector: Mapping[str, str] | None = None,
    expiry_seconds: int | None = None,
    decommission_at: datetime | None = None,
    created_at: datetime | None = None,
) -> str:
    """Request a placement and return its id; see `PlacementRequest` for the parameters.

    Raises
    ------
    UnsupportedDestinationError
        The request cannot be meant.
    StoreError
        The store could not be written.
    """
    request = PlacementRequest(
        placement_id=str(uuid.uuid4()),
        created_at=created_at or datetime.now(UTC),
        executor_id=executor_id,
        destination_host=destination_host,
        node_selector=dict(node_selector or {}),
        run_id=run_id,
        decommission_at=decommission_at,
    )
    if expiry_seconds is not None:
        request = replace(request, expiry_seconds=expiry_seconds)
    request.check()
    channel.requests.write({request.placement_id: request.to_json()})
    return request.placement_id


def withdraw_placement(channel: Channel, placement_id: str) -> PlacementRequest | None:
    """Mark a request as withdrawn and return it; None when there is no such request."""
    written: PlacementRequest | None = None

    def change(requests: Snapshot) -> dict[str, str | None]:
        nonlocal written
        found = read_placement_requests(requests)[0].get(placement_id)
        written = None if found is None else replace(found, withdrawn=True)
        return {} if written is None else {placement_id: written.to_json()}

    compare_and_set(channel.requests, change)
    return written


def write_placement_response(channel: Channel, response: PlacementResponse) -> None:
    """Write the answer to a request; raises `StoreError`."""
    channel.reports.write({response.placement_id: response.to_json()})


def read_placement_request(channel: Channel, placement_id: str) -> PlacementRequest | None:
    """Return one request, or None where there is none that can be read."""
    return read_placement_requests(channel.requests.read())[0].get(placement_id)


def read_placement_response(channel: Channel, placement_id: str) -> PlacementResponse | None:
    """Return one response, or None where there is none that can be read."""
    return read_placement_responses(channel.reports.read())[0].get(placement_id)


def delete_placement_request(channel: Channel, placement_id: str) -> None:
    """Remove a request if it is there; its placement ends, where it still can, as if it had been withdrawn."""
    channel.requests.write({placement_id: None})


def delete_placement_response(channel: Channel, placement_id: str) -> None:
    """Remove a response if it is there."""
    channel.reports.write({placement_id: None})


def delete_placement(channel: Channel, placement_id: str) -> None:
    """Remove request and response of one placement."""
    delete_placement_request(channel, placement_id)  # first: a request without its response would be a new one
    delete_placement_response(channel, placement_id)


def delete_all_placements(channel: Channel) -> list[str]:
    """Remove every request and response, also what cannot be read; returns the keys."""
    keys = dict.fromkeys([*channel.requests.read().entries, *channel.reports.read().entries])
    if keys:
        channel.requests.write(keys)
        channel.reports.write(keys)
    return [*keys]
