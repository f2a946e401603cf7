"""What a pass reads may be behind: the watches are held back here, and what is decided is right all the same."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from spark_drain_operator.applications.kubeflow import KubeflowAdapter
from spark_drain_operator.engine.queue import DelayedQueue
from spark_drain_operator.engine.reconciler import Reconciler
from spark_drain_operator.engine.workers import ObjectKey
from spark_drain_operator.handlers.watched import Watched
from spark_drain_operator.handlers.watches import informers
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.kinds.drain.resource import RESOURCE
from spark_drain_operator.settings import Settings
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.channels import CONFIG_MAPS
from spark_drain_operator.storage.pods import DRIVERS
from spark_drain_store import DrainState, StoreError
from spark_drain_store.kube_client import ApiError, KubeClient, WatchStream

from tests.operator.conftest import World, condition
from tests.operator.process import OperatorProcess
from tests.operator.scripted_agent import ScriptedAgent
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver

PLURALS = (CONFIG_MAPS.plural, DRIVERS.plural, KubeflowAdapter.watched.plural)


class _HeldStream:
    """Passes the events of a watch on when it is let."""

    def __init__(self, stream: WatchStream, may_go_on: threading.Event) -> None:
        self._stream, self._may_go_on = stream, may_go_on

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for event in self._stream:
            self._may_go_on.wait()
            yield event

    def close(self) -> None:
        self._may_go_on.set()
        self._stream.close()


class BehindClient(KubeClient):
    """Its watches can be held back."""

    def __init__(self, configuration: Any) -> None:
        super().__init__(configuration)
        self.may_go_on = {plural: threading.Event() for plural in PLURALS}
        self.requests: list[str] = []

    def request(self, method: str, path: str, **details: Any) -> dict[str, Any]:
        self.requests.append(f"{method} {path}")
        return super().request(method, path, **details)

    def watch(self, path: str, query: Mapping[str, str], timeout_seconds: float, **options: Any) -> WatchStream:
        plural = path.rpartition("/")[2]
        return _HeldStream(super().watch(path, query, timeout_seconds, **options), self.may_go_on[plural])  # type: ignore[return-value]


class Behind:
    """A world whose operator runs in this process, pass by pass."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        application = ScriptedApplication(server.client, namespace)
        self.world = World(server, namespace, OperatorProcess({}, "", log=None), application)  # type: ignore[arg-type]
        client = BehindClient.from_kubeconfig(str(server.kubeconfig))
        assert isinstance(client, BehindClient)
        self.client = client
        self.cluster = Cluster.over(client)
        self._informers = informers(self.cluster, [namespace], Watched(), DelayedQueue[ObjectKey]())
        self.hold(False)
        for informer in self._informers:
            informer.start()
        self.reconciler = Reconciler(DrainKind(self.cluster, Settings(resync_seconds=600)), self.cluster)
        eventually(lambda: all(self.synced(plural) for plural in PLURALS), "the watches run")

    def synced(self, plural: str) -> bool:
        return self.cluster.cache.lacks(plural, self.world.namespace, "no-such-object")

    def hold(self, held: bool, *plurals: str) -> None:
        for plural in plurals or PLURALS:
            event = self.client.may_go_on[plural]
            event.clear() if held else event.set()

    def caught_up(self) -> None:
        """Wait until the cache has what the API server has."""
        self.hold(False)

        def same() -> bool:
            maps = self.world.client.request("GET", f"/api/v1/namespaces/{self.world.namespace}/configmaps", query=CONFIG_MAPS.query)[
                "items"
            ]
            pods = self.world.client.request("GET", f"/api/v1/namespaces/{self.world.namespace}/pods", query=DRIVERS.query)["items"]
            seen = [(CONFIG_MAPS.plural, item) for item in maps] + [(DRIVERS.plural, item) for item in pods]
            if self.world.application.exists:
                seen.append((KubeflowAdapter.watched.plural, self.world.application.body()))
            return all(self._version(plural, item) == item["metadata"]["resourceVersion"] for plural, item in seen)

        eventually(same, "the cache has caught up")

    def _version(self, plural: str, item: dict[str, Any]) -> str:
        found = self.cluster.cache.get(plural, self.world.namespace, item["metadata"]["name"])
        return found["metadata"]["resourceVersion"] if found else ""

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            try:
                self.reconciler.reconcile(self.world.namespace, "drain")
            except (ApiError, StoreError):
                continue

    def asked(self) -> tuple[ScriptedAgent, str]:
        """Bring a drain to where the agent was asked, and the cache knows it."""
        agent = self.world.run_application()
        self.caught_up()
        drain_id = self.world.create_drain()
        self.look()
        assert agent.notifications()
        self.caught_up()
        return agent, drain_id

    def drained(self) -> tuple[ScriptedAgent, str]:
        """Bring a drain to where the agent is done, and the cache knows it."""
        agent, drain_id = self.asked()
        agent.drain(drain_id)
        self.caught_up()
        return agent, drain_id

    def close(self) -> None:
        for informer in self._informers:
            informer.stop()
        self.client.close()


@pytest.fixture
def behind(api_server: ApiServer, namespace: str) -> Iterator[Behind]:
    behind = Behind(api_server, namespace)
    yield behind
    behind.close()


def test_the_passes_of_these_tests_read_what_the_watches_have_told(behind: Behind) -> None:
    """Else they would show nothing."""
    agent, drain_id = behind.asked()
    agent.report(drain_id, DrainState.STOPPING)
    behind.caught_up()
    before = len(behind.client.requests)
    behind.look()
    read = [request for request in behind.client.requests[before:] if request.startswith("GET")]
    assert all("/pipelinedrains/" in request for request in read), read
    behind.hold(True)
    agent.report(drain_id, DrainState.FLUSHING)
    behind.look()
    assert behind.world.drain()["status"]["phase"] == "Stopping", "it does not know yet"
    behind.caught_up()

    def stored() -> bool:
        behind.look()
        return bool(behind.world.drain()["status"]["phase"] == "Flushing")

    eventually(stored, "progress is stored, a second late", every=0.3)


def test_of_two_drains_the_second_is_refused_though_the_first_is_not_seen(behind: Behind) -> None:
    agent = behind.world.run_application()
    behind.caught_up()
    behind.hold(True)
    other = Reconciler(DrainKind(Cluster.over(behind.world.client), Settings()), Cluster.over(behind.world.client))
    first = behind.world.create_drain("first")
    other.reconcile(behind.world.namespace, "first")
    behind.world.create_drain()
    behind.look(2)
    assert [*agent.notifications()] == [first]
    assert condition(behind.world.drain(), "Accepted")["reason"] == "DrainAlreadyActive"  # type: ignore[index]


def test_the_next_version_is_not_asked_for_what_the_version_before_was(behind: Behind) -> None:
    """The application's watch is behind that of its driver: the new driver was started with a spec that is not seen yet."""
    behind.world.run_application()
    behind.caught_up()
    behind.hold(True, KubeflowAdapter.watched.plural)
    behind.world.application.change(image="example/pipeline:2")
    uid = behind.world.application.restart("spark-two")
    digest = behind.world.application.body()
    eventually(
        lambda: [pod["metadata"]["uid"] for pod in behind.cluster.cache.together("pods", behind.world.namespace, "app") or []] == [uid]
    )
    behind.world.create_drain()
    behind.look()
    behind.look()
    behind.caught_up()
    behind.look()
    assert digest["metadata"]["generation"] == 2
    status = behind.world.drain()["status"]
    assert status["application"]["runId"] == "spark-two"
    assert "nextVersion" not in status, "it runs what it was started with"


def test_a_driver_that_is_gone_unseen_does_not_make_a_drain_complete(behind: Behind) -> None:
    agent, drain_id = behind.drained()
    behind.hold(True)
    behind.world.application.restart("spark-two")
    behind.look(2)
    found = condition(behind.world.drain(), "ExecutorsDrained")
    assert found is None or found["reason"] == "DriverUnconfirmed"
    assert not behind.world.application.suspended
    behind.caught_up()
    behind.look()
    assert condition(behind.world.drain(), "ExecutorsDrained")["reason"] == "DriverUnconfirmed"  # type: ignore[index]
    assert agent.notifications()
    assert drain_id


def test_an_executor_that_has_joined_unseen_is_counted(behind: Behind) -> None:
    agent, drain_id = behind.asked()
    behind.hold(True, DRIVERS.plural)
    agent.drained(drain_id, executors="1-1", executors_expected=2)
    eventually(
        lambda: "DRAINED" in str(behind.cluster.channels.open(behind.world.namespace, "SparkApplication", "app").reports.read()).upper()
    )
    behind.look(2)
    assert condition(behind.world.drain(), "ExecutorsDrained")["reason"] == "ExecutorsUnaccounted"  # type: ignore[index]
    assert not behind.world.application.suspended


def test_the_next_version_is_not_suspended_though_its_spec_is_not_seen(behind: Behind) -> None:
    behind.drained()
    behind.hold(True)
    behind.world.application.change(image="example/pipeline:2")
    behind.look(3)
    assert not behind.world.application.suspended
    behind.caught_up()
    behind.look()
    assert condition(behind.world.drain(), "ScaledDown")["reason"] == "SpecChanged"  # type: ignore[index]


def test_who_has_removed_the_request_unseen_keeps_the_application_running(behind: Behind) -> None:
    agent, drain_id = behind.drained()
    behind.hold(True)
    agent.channel.requests.write({drain_id: None})
    behind.look(3)
    assert not behind.world.application.suspended
    assert behind.world.drain()["status"]["phase"] == "Failed"


def test_a_withdrawal_finds_the_report_that_is_not_seen(behind: Behind) -> None:
    agent, drain_id = behind.asked()
    behind.hold(True)
    agent.report(drain_id, DrainState.FLUSHING)
    behind.world.patch_drain(spec={"cancel": True})
    behind.look(2)
    withdrawal = behind.world.drain()["status"]["withdrawal"]
    assert withdrawal["reason"] == "WithdrawalTooLate"


def test_a_deleted_application_is_not_missed_for_ever(behind: Behind) -> None:
    behind.asked()
    behind.world.application.delete()
    behind.world.application.end_pods()
    eventually(lambda: behind.cluster.cache.lacks(KubeflowAdapter.watched.plural, behind.world.namespace, "app"), "its deletion is seen")
    behind.look(3)
    assert behind.world.drain()["status"]["phase"] == "Abandoned"


def test_pods_that_are_left_are_seen_though_their_driver_seems_gone(behind: Behind) -> None:
    behind.drained()
    behind.look()
    assert behind.world.application.suspended
    behind.world.application.set_state("SUSPENDED")
    behind.world.application.hold_pods(role="executor")
    behind.world.application.end_pods(role="driver")
    behind.caught_up()
    behind.look(2)
    assert behind.world.drain()["status"]["phase"] == "ScalingDown"
    behind.world.application.hold_pods(role="executor", held=False)
    behind.world.application.end_pods()
    behind.look(3)
    assert behind.world.drain()["status"]["phase"] == "Drained"


def test_resource_is_watched() -> None:
    assert RESOURCE.collection.query == {"fieldSelector": RESOURCE.active}
