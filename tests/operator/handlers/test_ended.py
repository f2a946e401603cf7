"""What has ended is not watched; what is left to do for it is done all the same."""

import pytest
import yaml
from spark_drain_operator.engine.queue import DelayedQueue
from spark_drain_operator.engine.workers import ObjectKey
from spark_drain_operator.handlers.ended import Ended
from spark_drain_operator.kinds.drain.reasons import Phase
from spark_drain_operator.kinds.drain.resource import RESOURCE
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.own_objects import GROUP
from spark_drain_store.kube_client import ApiUnavailableError

from tests.operator.conftest import World
from tests.operator.finished import finished
from tests.support.apiserver import DRAINS, ROOT, ApiServer, drain_body
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver

LAST = ObjectKey("", "", "")


def test_only_those_with_something_left_to_do_are_queued(api_server: ApiServer, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_drain_operator.storage.own_objects._PAGE", 2)
    for number in range(5):
        finished(api_server, namespace, f"plain-{number}")
    finished(api_server, namespace, "to-be-deleted", ttlSecondsAfterFinished=0)
    finished(api_server, namespace, "held", finalizers=(f"{GROUP}/drain",))
    api_server.client.request("POST", DRAINS.format(namespace), body=drain_body("live"))
    for where in (namespace, ""):
        queue: DelayedQueue[ObjectKey] = DelayedQueue()
        Ended(Cluster.over(api_server.client), [RESOURCE], [where].copy, queue).look()
        queue.add(LAST)
        names = {key.name for key in iter(queue.get, LAST) if key is not None and key.namespace == namespace}
        assert names == {"to-be-deleted", "held"}  # other tests' drains lie in other namespaces of the same server


def test_an_operator_that_starts_ends_what_another_has_left(own_world: World) -> None:
    world = own_world
    finished(world.server, world.namespace, "to-be-deleted", ttlSecondsAfterFinished=0)
    finished(world.server, world.namespace, "held", finalizers=(f"{GROUP}/drain",))
    world.operator.start()
    eventually(lambda: not world.drain("held")["metadata"].get("finalizers"), "the finalizer is removed")
    path = DRAINS.format(world.namespace)
    eventually(lambda: [item["metadata"]["name"] for item in world.client.request("GET", path)["items"]] == ["held"], "it is deleted")


def test_the_definition_knows_the_same_ends() -> None:
    version = yaml.safe_load((ROOT / "crds/pipelinedrain.yaml").read_text())["spec"]["versions"][0]
    rules = version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    (rule,) = [each["rule"] for each in rules if "status" in each["rule"]]
    assert rule.partition("in ")[2].strip() == str([str(phase) for phase in Phase if phase.terminal]).replace('"', "'") + ")"
    assert RESOURCE.active.count("!=") == sum(phase.terminal for phase in Phase)


def test_a_look_that_fails_is_repeated_soon(api_server: ApiServer, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_drain_operator.handlers.ended._AFTER_A_FAILURE", 0.1)
    finished(api_server, namespace, "held", finalizers=(f"{GROUP}/drain",))
    queue: DelayedQueue[ObjectKey] = DelayedQueue()
    ended = Ended(Cluster.over(api_server.client), [RESOURCE], lambda: [namespace], queue)
    look, failures = ended.look, iter(range(2))

    def fail_at_first() -> None:
        if next(failures, None) is not None:
            raise ApiUnavailableError("the Kubernetes API server answered 429")
        look()

    monkeypatch.setattr(ended, "look", fail_at_first)
    ended.thread.start()
    try:
        key = queue.get()
    finally:
        ended.thread.stop()
    assert key is not None
    assert key.name == "held"
