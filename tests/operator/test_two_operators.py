"""Two operators for a moment, as where a node is cut off: one stands still between two requests, and the other goes on."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.kinds.placement.kind import PlacementKind
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_store import StoreError
from spark_drain_store.kube_client import ApiError, KubeClient
from spark_drain_store.placement_messages import PlacementStatus

from tests.operator.conftest import World
from tests.operator.kinds.placement.conftest import PlacementWorld, placement_agent
from tests.operator.process import OperatorProcess
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import ApiServer

pytestmark = pytest.mark.apiserver


class LateClient(KubeClient):
    """Something happens before one of its requests."""

    part = ""
    meanwhile: Callable[[], None] | None = None

    def request(self, method: str, path: str, **details: Any) -> dict[str, Any]:
        if self.meanwhile is not None and re.search(self.part, f"{method} {path} {details}"):
            happens, self.meanwhile = self.meanwhile, None
            happens()
        return super().request(method, path, **details)


class Two:
    """A world that two operators serve."""

    def __init__(self, server: ApiServer, namespace: str, kind: type[DrainKind | PlacementKind], name: str) -> None:
        application = ScriptedApplication(server.client, namespace)
        self.world = World(server, namespace, OperatorProcess({}, "", log=None), application)  # type: ignore[arg-type]
        self._late = LateClient.from_kubeconfig(str(server.kubeconfig))
        self._key = (namespace, name)
        self._first, self._second = (self._operator(kind, client) for client in (server.client, self._late))

    @staticmethod
    def _operator(kind: type[DrainKind | PlacementKind], client: KubeClient) -> Reconciler[Any, Any, Any]:
        cluster = Cluster.over(client)
        return Reconciler(kind(cluster, Settings()), cluster)

    def look(self, times: int = 1) -> None:
        """Let the first operator do some passes."""
        for _ in range(times):
            self._first.reconcile(*self._key)

    def late_look(self, part: str, meanwhile: Callable[[], None]) -> None:
        """Let the second one do a pass in which something happens before the first request that a pattern finds."""
        assert isinstance(self._late, LateClient)
        self._late.part, self._late.meanwhile = part, meanwhile
        with suppress(ApiError, StoreError):
            self._second.reconcile(*self._key)
        assert self._late.meanwhile is None
        self._late.close()


@pytest.mark.parametrize("after", ["Restart", "Suspend"])
def test_the_next_run_is_not_scaled_down(api_server: ApiServer, namespace: str, after: str) -> None:
    two = Two(api_server, namespace, DrainKind, "drain")
    application = two.world.application
    agent = two.world.run_application()
    drain_id = two.world.create_drain(mode="Stop", afterDrain=after)
    two.look()
    agent.drain(drain_id)
    two.look(3)

    def the_next_run_starts() -> None:
        application.obey_suspend()
        two.look(5)
        if after != "Restart":
            application.resume()
        application.start("spark-two")

    two.late_look("/pods", the_next_run_starts)
    assert two.world.drain()["status"]["phase"] == "Drained"
    assert not application.suspended


def test_what_was_cancelled_is_not_asked_for(api_server: ApiServer, namespace: str) -> None:
    two = Two(api_server, namespace, DrainKind, "drain")
    agent = two.world.run_application()
    two.world.create_drain()

    def it_is_cancelled() -> None:
        two.look()
        two.world.patch_drain(spec={"cancel": True})
        two.look(2)

    two.late_look("/configmaps", it_is_cancelled)
    assert two.world.drain()["status"]["phase"] == "Cancelled"
    assert agent.notifications() == {}


def test_a_placement_that_was_cancelled_is_not_asked_for(api_server: ApiServer, namespace: str) -> None:
    two = Two(api_server, namespace, PlacementKind, "placement")
    two.world.run_application()
    running = PlacementWorld(two.world, placement_agent(two.world))
    uid = running.create()

    def it_is_cancelled() -> None:
        two.look()
        running.agent.respond(uid, PlacementStatus.FAILED, "withdrawn")
        running.patch(cancel=True)
        two.look(2)

    two.late_look("/configmaps", it_is_cancelled)
    assert running.placement()["status"]["phase"] == "Cancelled"
    assert not running.agent.placements().requests


WRITES_THE_REQUEST = "POST .*agent-requests"


def test_a_drain_that_goes_while_its_request_is_written_leaves_none(api_server: ApiServer, namespace: str) -> None:
    two = Two(api_server, namespace, DrainKind, "drain")
    agent = two.world.run_application()
    two.world.create_drain()

    two.late_look(WRITES_THE_REQUEST, two.world.lose_drain)
    assert two.world.drain_is_gone()
    assert agent.notifications() == {}


def test_a_placement_that_goes_while_its_request_is_written_leaves_none(api_server: ApiServer, namespace: str) -> None:
    two = Two(api_server, namespace, PlacementKind, "placement")
    two.world.run_application()
    running = PlacementWorld(two.world, placement_agent(two.world))
    running.create()

    two.late_look(WRITES_THE_REQUEST, running.lose)
    assert running.is_gone()
    assert not running.agent.placements().requests
