"""Whoever may create drains decides how many there are, and how large: the operator has never all of them in memory."""

from collections.abc import Iterator
from typing import Any

import pytest
from spark_drain_operator.kinds.drain.resource import RESOURCE
from spark_drain_operator.storage.own_objects import OwnObjects
from spark_drain_operator.storage.watch_cache import WatchCache
from spark_drain_store import kube_client
from spark_drain_store.kube_client import MERGE_PATCH, AnswerTooLargeError, ApiError, KubeClient

from tests.support.apiserver import DRAINS, ApiServer, drain_body, new_namespaces

pytestmark = pytest.mark.apiserver

COUNT, BYTES = 30, 200_000
LABEL = "example.com/large"


class Counting(KubeClient):
    requests = 0

    def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        self.requests += 1
        return super().request(method, path, **options)


@pytest.fixture(scope="module")
def large(api_server: ApiServer) -> Iterator[tuple[str, dict[str, str]]]:
    """Make many large drains of one application; returns their namespace, and uid to name."""
    with new_namespaces(api_server, 1) as (namespace,):
        found = {}
        for number in range(COUNT):
            body = drain_body(f"large-{number:02}")
            body["metadata"] |= {"annotations": {"note": "x" * BYTES}, "labels": {LABEL: "yes"}}
            created = api_server.client.request("POST", DRAINS.format(namespace), body=body)
            found[created["metadata"]["uid"]] = created["metadata"]["name"]
        yield namespace, found


@pytest.fixture
def client(api_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    """Return a client that reads no answer with all of them."""
    monkeypatch.setattr(kube_client, "_ANSWER_BYTES", COUNT * BYTES - 1)
    client = Counting.from_kubeconfig(str(api_server.kubeconfig))
    assert isinstance(client, Counting)
    yield client
    client.close()


def test_all_of_them_are_too_much(client: Counting, large: tuple[str, dict[str, str]]) -> None:
    with pytest.raises(AnswerTooLargeError):
        client.request("GET", DRAINS.format(large[0]))


def test_one_is_found_by_its_uid(client: Counting, large: tuple[str, dict[str, str]]) -> None:
    namespace, names = large
    objects = OwnObjects(client, RESOURCE, WatchCache())
    assert [objects.name_of(namespace, "app", uid) for uid in names] == list(names.values())
    before = client.requests
    assert objects.name_of(namespace, "app", next(iter(names))) == "large-00"
    assert client.requests == before + 1, "it is on the first page"
    assert objects.name_of(namespace, "app", "none") is None
    assert objects.name_of(namespace, "another", next(iter(names))) is None


def test_one_that_is_watched_is_not_asked_for(client: Counting, large: tuple[str, dict[str, str]], api_server: ApiServer) -> None:
    namespace, names = large
    cache = WatchCache()
    cache.watch(RESOURCE.collection)
    uid, name = list(names.items())[-1]
    cache.put(RESOURCE.plural, api_server.client.request("GET", f"{DRAINS.format(namespace)}/{name}"))
    with cache.bypassed():  # what is decided rests on fresh reads; a uid keeps its name
        assert OwnObjects(client, RESOURCE, cache).name_of(namespace, "app", uid) == name
    assert client.requests == 0


def test_those_of_a_label_come_page_by_page(client: Counting, large: tuple[str, dict[str, str]]) -> None:
    namespace, names = large
    objects = OwnObjects(client, RESOURCE, WatchCache())
    found = objects.labelled(LABEL, [namespace])
    assert next(found)["metadata"]["name"] == "large-00"
    assert client.requests == 1
    assert [body["metadata"]["name"] for body in found] == list(names.values())[1:]
    assert [body["metadata"]["name"] for body in objects.labelled(LABEL)] == list(names.values())


def test_a_lost_race_for_the_finalizer_is_a_conflict(api_server: ApiServer, namespace: str) -> None:
    """The API server answers 422, as to what is invalid: a worker would tell of a failure at once."""
    path = DRAINS.format(namespace)
    read = api_server.client.request("POST", path, body=drain_body("drain"))
    changed = {"metadata": {"labels": {LABEL: "yes"}}}
    api_server.client.request("PATCH", f"{path}/drain", body=changed, content_type=MERGE_PATCH)
    with pytest.raises(ApiError, match="has been changed since it was read") as raised:
        OwnObjects(api_server.client, RESOURCE, WatchCache()).set_finalizer(read, present=True)
    assert raised.value.status == 409
