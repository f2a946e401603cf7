"""Drains that end, and are deleted, while ConfigMaps cannot be written."""

from typing import Any

import pytest
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_store import DrainState, StoreError
from spark_drain_store.kube_client import ApiError, KubeClient

from tests.operator.conftest import World
from tests.operator.process import OperatorProcess
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver


class Refusing(KubeClient):
    """ConfigMaps cannot be written for a while."""

    refuses = False

    def request(self, method: str, path: str, **details: Any) -> dict[str, Any]:
        if self.refuses and method == "PATCH" and "/configmaps/" in path:
            raise ApiError(403, "Forbidden", "not now")
        return super().request(method, path, **details)


def test_its_request_goes_first(api_server: ApiServer, namespace: str) -> None:
    client = Refusing.from_kubeconfig(str(api_server.kubeconfig))
    assert isinstance(client, Refusing)
    cluster = Cluster.over(client)
    reconciler = Reconciler(DrainKind(cluster, Settings()), cluster)
    application = ScriptedApplication(api_server.client, namespace)
    world = World(api_server, namespace, OperatorProcess({}, "", log=None), application)  # type: ignore[arg-type]
    agent = world.run_application()
    drain_id = world.create_drain(acknowledgeTimeoutSeconds=1)
    reconciler.reconcile(namespace, "drain")
    agent.report(drain_id, DrainState.STOPPING)
    reconciler.reconcile(namespace, "drain")
    client.refuses = True
    world.delete_drain()

    def ended() -> bool:
        with pytest.raises(StoreError):
            reconciler.reconcile(namespace, "drain")
        reconciler.tell_failure(namespace, "drain", "403 Forbidden")
        return world.drain_is_gone() or world.drain()["status"]["phase"] == "Cancelled"

    eventually(ended, what="the drain ends, whatever cannot be written")
    assert not world.drain_is_gone(), "the agent would carry out what nobody wants"
    client.refuses = False
    reconciler.reconcile(namespace, "drain")
    assert world.drain_is_gone()
    assert agent.notifications() == {}
    client.close()


def test_what_is_deleted_without_its_finalizer_leaves_no_request(world: World) -> None:
    agent, _ = world.drain_at(DrainState.ACKNOWLEDGED, "Acknowledged")
    world.lose_drain()
    eventually(lambda: agent.notifications() == {}, "the request is removed")
