"""What is drained is scaled down, ends and goes, also where ConfigMaps cannot be written any more."""

from contextlib import suppress
from typing import Any

import pytest
from spark_drain_operator.engine import reconciler as engine
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.kinds.drain.steps import keep_result
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_store import DrainState, StoreError
from spark_drain_store.channel import config_map_names
from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient

from tests.operator.conftest import World, condition
from tests.operator.process import OperatorProcess
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import ApiServer

pytestmark = pytest.mark.apiserver

REQUESTS, REPORTS = config_map_names("app")


class Refusing(KubeClient):
    """No ConfigMap can be created, or changed: the right is lost."""

    refuses = False

    def request(self, method: str, path: str, **details: Any) -> dict[str, Any]:
        if self.refuses and method != "GET" and "/configmaps" in path:
            raise ApiError(403, "Forbidden", "not now")
        return super().request(method, path, **details)


class Unwritable:
    """A drain that is complete before its operator can write no ConfigMap any more."""

    def __init__(self, server: ApiServer, namespace: str, **spec: Any) -> None:
        client = Refusing.from_kubeconfig(str(server.kubeconfig))
        assert isinstance(client, Refusing)
        cluster = Cluster.over(client)
        self.client, self.namespace = client, namespace
        self._reconciler = Reconciler(DrainKind(cluster, Settings(allow_delete=True)), cluster)
        application = ScriptedApplication(server.client, namespace)
        self.world = World(server, namespace, OperatorProcess({}, "", log=None), application)  # type: ignore[arg-type]
        agent = self.world.run_application()
        drain_id = self.world.create_drain(**spec)
        self._reconciler.reconcile(namespace, "drain")
        agent.report(drain_id, DrainState.REPORTING)
        self._reconciler.reconcile(namespace, "drain")
        agent.drained(drain_id)

    def look(self, times: int = 1) -> None:
        """Do as a worker does: what fails is told."""
        for _ in range(times):
            try:
                self._reconciler.reconcile(self.namespace, "drain")
            except (ApiError, StoreError) as error:
                with suppress(ApiError, StoreError):
                    self._reconciler.tell_failure(self.namespace, "drain", str(error))

    def stalled(self) -> str:
        found = condition(self.world.drain(), "Stalled")
        assert found is not None
        return str(found["reason"])


@pytest.mark.parametrize("after", ["Suspend", "Delete"])
def test_without_a_result_what_is_drained_is_suspended_in_the_end(
    api_server: ApiServer, namespace: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain = Unwritable(api_server, namespace, afterDrain=after)
    drain.client.refuses = True
    drain.look(3)
    assert drain.stalled() == "ReconcileFailed"
    assert drain.world.untouched, "the right may come back"
    monkeypatch.setattr(keep_result, "PATIENCE_SECONDS", 0)
    drain.look()
    assert drain.stalled() == "ResultNotKept"
    drain.world.application.obey_suspend()
    drain.look(4)
    status = drain.world.drain()["status"]
    assert status["phase"] == "Drained"
    assert f"403 Forbidden: not now): they are in the report in ConfigMap {REPORTS}" in status["message"]
    assert drain.world.application.suspended, "its report would go with it"


def test_a_result_that_can_be_written_late_is_kept(api_server: ApiServer, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep_result, "PATIENCE_SECONDS", 0)
    drain = Unwritable(api_server, namespace)
    drain.client.refuses = True
    drain.look(3)
    assert drain.stalled() == "ResultNotKept"
    drain.client.refuses = False
    drain.world.application.obey_suspend()
    drain.look(3)
    assert drain.world.drain()["status"]["phase"] == "Drained"
    assert drain.world.drain()["status"]["resultRef"] == {"name": "drain-result"}


@pytest.mark.parametrize("suspended", [False, True])
@pytest.mark.parametrize("why", ["immutable", "forbidden"])
def test_it_is_deleted_all_the_same(
    api_server: ApiServer, namespace: str, why: str, suspended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain = Unwritable(api_server, namespace)
    if suspended:
        drain.look(2)
        assert drain.world.application.suspended
    if why == "immutable":
        path = f"/api/v1/namespaces/{namespace}/configmaps/{REQUESTS}"
        api_server.client.request("PATCH", path, body={"immutable": True}, content_type=MERGE_PATCH)
    else:
        drain.client.refuses = True
    drain.look(2)
    drain.world.delete_drain()
    drain.look(3)
    drain.world.application.obey_suspend()
    drain.look(3)
    assert drain.world.drain()["status"]["phase"] == "Drained"
    drain.look()
    assert not drain.world.drain_is_gone(), "its request has to go first"
    monkeypatch.setattr(engine, "_REMOVE_WITHIN_SECONDS", 0)
    drain.look()
    assert drain.world.drain_is_gone()
