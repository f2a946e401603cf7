"""A world whose application has executors to be moved."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from spark_drain_store import Channel
from spark_drain_store.channel import config_map_names
from spark_drain_store.configmap import ConfigMapStore
from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient
from spark_drain_store.placement_messages import PlacementRequest, PlacementResponse, PlacementStatus
from spark_drain_store.placements import Placements, write_placement_response
from spark_drain_store.topics import PLACEMENT

from tests.operator.conftest import World
from tests.support.apiserver import PLACEMENTS, placement_body
from tests.support.waiting import eventually


@dataclass
class PlacementAgent:
    """Plays the driver agent: the real messages through the real store, without Spark."""

    channel: Channel
    run_id: str
    sent: dict[str, PlacementResponse] = field(default_factory=dict)

    def placements(self) -> Placements:
        return Placements.read(self.channel)

    def await_request(self) -> PlacementRequest:
        return eventually(lambda: next(iter(self.placements().requests.values()), None), what="a placement request")

    def await_withdrawn(self) -> PlacementRequest:
        def withdrawn() -> PlacementRequest | None:
            return next((item for item in self.placements().requests.values() if item.withdrawn), None)

        return eventually(withdrawn, what="the request is withdrawn")

    def respond(self, placement_id: str, status: PlacementStatus, message: str = "", **fields: Any) -> None:
        base = self.sent.get(placement_id) or PlacementResponse(placement_id=placement_id, status=status, updated_at=datetime.now(UTC))
        response = replace(base, status=status, message=message, run_id=self.run_id, updated_at=datetime.now(UTC), **fields)
        write_placement_response(self.channel, response)
        self.sent[placement_id] = response


@dataclass
class PlacementWorld:
    """A running application with its agent, and ExecutorPlacements."""

    world: World
    agent: PlacementAgent

    @property
    def client(self) -> KubeClient:
        return self.world.client

    def create(self, name: str = "placement", **spec: Any) -> str:
        """Create an ExecutorPlacement; returns its uid."""
        wanted = spec if "podName" in spec else {"executorId": "1", **spec}
        body = self.client.request("POST", PLACEMENTS.format(self.world.namespace), body=placement_body(name, **wanted))
        return str(body["metadata"]["uid"])

    def placement(self, name: str = "placement") -> dict[str, Any]:
        return self.client.request("GET", f"{PLACEMENTS.format(self.world.namespace)}/{name}")

    def patch(self, name: str = "placement", **spec: Any) -> None:
        path = f"{PLACEMENTS.format(self.world.namespace)}/{name}"
        self.client.request("PATCH", path, body={"spec": spec}, content_type=MERGE_PATCH)

    def delete(self, name: str = "placement") -> None:
        self.client.request("DELETE", f"{PLACEMENTS.format(self.world.namespace)}/{name}")

    def lose(self, name: str = "placement") -> None:
        """Delete it whatever holds it."""
        path = f"{PLACEMENTS.format(self.world.namespace)}/{name}"
        self.client.request("PATCH", path, body={"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
        self.delete(name)

    def is_gone(self, name: str = "placement") -> bool:
        try:
            self.placement(name)
        except ApiError as error:
            return error.status == 404
        return False

    def await_phase(self, phase: str, name: str = "placement") -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            body = self.placement(name)
            return body if (body.get("status") or {}).get("phase") == phase else None

        try:
            return eventually(look, what=f"phase {phase}")
        except AssertionError as error:
            status = self.placement(name).get("status")
            raise AssertionError(f"{error}\nstatus: {status}\noperator: {self.world.operator.log()[-4000:]}") from error

    def events(self, name: str = "placement") -> list[tuple[str, str]]:
        """Return type and reason of the Events of a placement, in order."""
        query = {"fieldSelector": f"involvedObject.name={name},involvedObject.kind=ExecutorPlacement"}
        items = self.client.request("GET", f"/api/v1/namespaces/{self.world.namespace}/events", query=query)["items"]
        return [(item["type"], item["reason"]) for item in sorted(items, key=lambda item: str(item["eventTime"]))]


def placement_agent(world: World, run_id: str = "spark-one") -> PlacementAgent:
    """Return the agent of a run of the world's application."""
    requests, reports = (ConfigMapStore(world.client, world.namespace, name) for name in config_map_names(world.application.name))
    return PlacementAgent(Channel.over(requests, reports, topic=PLACEMENT), run_id)


@pytest.fixture
def running(world: World) -> PlacementWorld:
    world.run_application()
    return PlacementWorld(world, placement_agent(world))


@pytest.fixture
def own_running(own_world: World) -> PlacementWorld:
    """Return a world with an operator of its own, not started yet."""
    own_world.run_application()
    return PlacementWorld(own_world, placement_agent(own_world))
