"""What a proxy between operator and API server answers says nothing of objects."""

from contextlib import suppress
from typing import Any

import pytest
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_store import DrainState, StoreError, StoreUnavailableError, kube_client
from spark_drain_store.kube_client import ApiError, ApiUnavailableError, KubeClient

from tests.operator.conftest import World
from tests.operator.process import OperatorProcess
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import ApiServer

pytestmark = pytest.mark.apiserver


class Proxied(KubeClient):
    """Reads of one kind of objects do not come to the API server."""

    kind = ""
    page = (404, b"404 page not found\n")

    def request(self, method: str, path: str, **details: Any) -> dict[str, Any]:
        if method == "GET" and self.kind and f"/{self.kind}" in path:
            return kube_client._answer(*self.page)
        return super().request(method, path, **details)


@pytest.mark.parametrize("kind", ["sparkapplications", "configmaps", "pods", "pipelinedrains"])
def test_a_404_of_a_proxy_ends_no_drain(api_server: ApiServer, namespace: str, kind: str) -> None:
    world = World(api_server, namespace, OperatorProcess({}, "", log=None), ScriptedApplication(api_server.client, namespace))  # type: ignore[arg-type]
    client = Proxied.from_kubeconfig(str(api_server.kubeconfig))
    assert isinstance(client, Proxied)
    cluster = Cluster.over(client)
    reconciler = Reconciler(DrainKind(cluster, Settings()), cluster)
    agent = world.run_application()
    drain_id = world.create_drain()
    reconciler.reconcile(namespace, "drain")
    agent.report(drain_id, DrainState.FLUSHING)
    reconciler.reconcile(namespace, "drain")
    client.kind = kind
    with suppress(ApiError, StoreError):
        reconciler.reconcile(namespace, "drain")
    client.kind = ""
    for _ in range(2):
        reconciler.reconcile(namespace, "drain")
    assert world.drain()["status"]["phase"] == "Flushing"
    assert [*agent.notifications()] == [drain_id]
    client.close()


@pytest.mark.parametrize("kind", ["sparkapplications", "configmaps", "pods", "pipelinedrains"])
def test_a_page_to_log_in_is_no_empty_list(api_server: ApiServer, namespace: str, kind: str) -> None:
    """Without a driver a cancelled drain would end before its agent has answered."""
    world = World(api_server, namespace, OperatorProcess({}, "", log=None), ScriptedApplication(api_server.client, namespace))  # type: ignore[arg-type]
    client = Proxied.from_kubeconfig(str(api_server.kubeconfig))
    assert isinstance(client, Proxied)
    client.page = (200, b"<html>please log in</html>")
    cluster = Cluster.over(client)
    reconciler = Reconciler(DrainKind(cluster, Settings()), cluster)
    agent = world.run_application()
    drain_id = world.create_drain()
    reconciler.reconcile(namespace, "drain")
    agent.report(drain_id, DrainState.STOPPING)
    reconciler.reconcile(namespace, "drain")
    world.patch_drain(spec={"cancel": True})
    client.kind = kind
    for _ in range(3):
        with suppress(ApiUnavailableError, StoreUnavailableError):
            reconciler.reconcile(namespace, "drain")
    assert world.drain()["status"]["phase"] == "Stopping"
    assert [*agent.notifications()] == [drain_id]
    client.close()


def test_an_application_of_a_kind_that_is_not_served_does_not_exist(api_server: ApiServer, namespace: str) -> None:
    assert Cluster.over(api_server.client).applications.get("nobody.example.org/v1", "applications", namespace, "app") is None
