"""A list and a watch keep a collection in the cache, whatever happens to the connection."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from spark_drain_operator.storage.informer import Informer
from spark_drain_operator.storage.watch_cache import Collection, WatchCache
from spark_drain_store.kube_client import MERGE_PATCH, ApiError, KubeClient, WatchStream

from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.apiserver

MAPS = Collection("v1", "configmaps", {"labelSelector": "kept=yes"}, lambda body: body["metadata"]["labels"]["kept"] == "yes")


class Interrupted(KubeClient):
    """Its watches can be ended, at once too, and their versions be too old."""

    stream: WatchStream | None = None
    too_old = False
    cut_off = False
    quiet_seconds = 0.0
    most_quiet_seconds = math.inf
    since = ""

    def watch(self, path: str, query: Mapping[str, str], timeout_seconds: float, **options: Any) -> WatchStream:
        if self.too_old:
            raise ApiError(410, "Expired", "too old resource version")
        self.quiet_seconds = options["quiet_seconds"]
        options["quiet_seconds"] = min(self.quiet_seconds, self.most_quiet_seconds)
        query = {**query, "resourceVersion": self.since or query["resourceVersion"]}
        self.stream = super().watch(path, query, timeout_seconds, **options)
        if self.cut_off:
            self.stream.close()
        return self.stream


class Kept:
    """A namespace whose ConfigMaps are kept."""

    def __init__(self, server: ApiServer, namespace: str, collection: Collection = MAPS) -> None:
        client = Interrupted.from_kubeconfig(str(server.kubeconfig))
        assert isinstance(client, Interrupted)
        self.client: Interrupted = client
        self.told: list[str] = []
        self.cache, self._server, self._namespace = WatchCache(), server, namespace
        self.informer = Informer(self.client, self.cache, collection, namespace, lambda body: self.told.append(body["metadata"]["name"]))
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"

    def create(self, name: str, **data: str) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"kept": "yes"}}, "data": data}
        self._server.client.request("POST", self._path, body=body)

    def change(self, name: str, **data: str) -> None:
        self._server.client.request("PATCH", f"{self._path}/{name}", body={"data": data}, content_type=MERGE_PATCH)

    def delete(self, name: str) -> None:
        self._server.client.request("DELETE", f"{self._path}/{name}")

    def version(self, name: str) -> str:
        return str(self._server.client.request("GET", f"{self._path}/{name}")["metadata"]["resourceVersion"])

    def put_version(self, name: str, version: int) -> None:
        """Have another version of one be known than any that was."""
        metadata = {"name": name, "namespace": self._namespace, "resourceVersion": str(version), "labels": {"kept": "yes"}}
        self.cache.put("configmaps", {"metadata": metadata})

    def data(self, name: str) -> dict[str, Any] | None:
        found = self.cache.get("configmaps", self._namespace, name)
        return None if found is None else found.get("data") or {}

    def gone(self, name: str) -> bool:
        return self.cache.lacks("configmaps", self._namespace, name)


@contextmanager
def kept(server: ApiServer, namespace: str, collection: Collection = MAPS) -> Iterator[Kept]:
    found = Kept(server, namespace, collection)
    yield found
    found.informer.stop()
    found.client.close()


def test_what_is_there_and_what_comes_is_kept(api_server: ApiServer, namespace: str) -> None:
    with kept(api_server, namespace) as maps:
        maps.create("before", a="1")
        maps.informer.start()
        eventually(lambda: maps.data("before") == {"a": "1"}, "the list")
        maps.create("after")
        eventually(lambda: maps.data("after") == {}, "an event")
        maps.change("before", a="2")
        eventually(lambda: maps.data("before") == {"a": "2"}, "a change")
        found = maps.cache.get("configmaps", namespace, "before")
        assert found is not None
        assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")
        maps.delete("after")
        eventually(lambda: maps.gone("after"), "a deletion")
        assert set(maps.told) == {"before", "after"}


def test_a_watch_that_is_cut_off_goes_on(api_server: ApiServer, namespace: str) -> None:
    with kept(api_server, namespace) as maps:
        maps.create("a", a="1")
        maps.informer.start()
        eventually(lambda: maps.data("a"), "the list")
        for number in range(3):
            stream = maps.client.stream
            assert stream is not None
            stream.close()
            maps.change("a", a=f"later {number}")
            eventually(lambda number=number: maps.data("a") == {"a": f"later {number}"}, "the change", 20)  # type: ignore[misc]


def test_a_server_that_is_behind_what_was_known(api_server: ApiServer, namespace: str, caplog: pytest.LogCaptureFixture) -> None:
    with kept(api_server, namespace) as maps:
        maps.create("a", a="1")
        maps.informer.start()
        eventually(lambda: maps.data("a"), "the list")
        maps.put_version("lost", 10**12)  # of a time that has not been, after the restoration
        stream = maps.client.stream
        assert stream is not None
        stream.close()
        eventually(maps.cache.versions.restored.is_set, "it is seen before the next watch", 20)
        assert maps.data("a") is None
        assert "was restored from a backup (its configmaps are at version" in caplog.text


def test_a_restored_server_that_has_passed_what_was_known(api_server: ApiServer, namespace: str, caplog: pytest.LogCaptureFixture) -> None:
    with kept(api_server, namespace) as maps:
        for name in ("a", "later"):
            maps.create(name)
        maps.put_version("a", int(maps.version("later")))
        maps.informer.start()
        eventually(maps.cache.versions.restored.is_set, "an object is older than it was")
        assert f"{namespace}/configmaps/a is older than what was known of it" in caplog.text


def test_a_watch_that_ends_without_a_word_is_not_believed(api_server: ApiServer, namespace: str) -> None:
    """One from a version of the future is answered, and silent until that is reached."""
    with kept(api_server, namespace) as maps:
        maps.create("a", a="1")
        maps.client.since = str(10**12)
        maps.client.most_quiet_seconds = 2.0
        maps.informer.start()
        eventually(lambda: maps.data("a"), "the list")
        maps.change("a", a="2")
        eventually(lambda: maps.data("a") == {"a": "2"}, "it is listed again", 20)


def test_what_is_deleted_while_nobody_watches_is_missed(api_server: ApiServer, namespace: str) -> None:
    with kept(api_server, namespace) as maps:
        for name in ("a", "b"):
            maps.create(name)
        maps.informer.start()
        eventually(lambda: maps.data("a") == {} == maps.data("b"), "the list")
        maps.client.too_old = True
        stream = maps.client.stream
        assert stream is not None
        stream.close()
        eventually(lambda: maps.data("a") is None, "nobody believes the cache")
        assert not maps.gone("a")
        maps.told.clear()
        maps.delete("a")
        maps.client.too_old = False
        eventually(lambda: maps.gone("a"), "the deletion is found", 20)
        assert maps.data("b") == {}
        assert "a" in maps.told


def test_what_is_not_served_has_to_be_asked_for(api_server: ApiServer, namespace: str, caplog: pytest.LogCaptureFixture) -> None:
    with kept(api_server, namespace, Collection("nobody.example.com/v1", "things", otherwise="nothing is thrown")) as things:
        things.informer.start()
        eventually(lambda: "cannot be watched" in caplog.text, "it is told")
        assert "): nothing is thrown" in caplog.text
        assert things.cache.together("things", namespace, "") is None


@pytest.mark.parametrize(("count", "character"), [(70, "x"), (12, "<")], ids=["many", "written as \\u003c"])
def test_large_objects_are_listed_page_by_page(api_server: ApiServer, namespace: str, count: int, character: str) -> None:
    """A list of all of them is longer than an answer may be, and would be asked for again and again."""
    names = {f"large-{number}" for number in range(count)}
    with kept(api_server, namespace) as maps:
        for name in sorted(names):
            maps.create(name, a=character * 1_000_000)
        maps.informer.start()
        eventually(lambda: set(maps.told) == names, "all are told", 30)
        eventually(lambda: maps.gone("none"), "the watch runs")


def test_where_watches_are_cut_off_at_once_lists_become_rare(api_server: ApiServer, namespace: str) -> None:
    with kept(api_server, namespace) as maps:
        maps.client.cut_off = True
        waits = [maps.informer._follow() for _ in range(5)]
        assert all(later > earlier for earlier, later in pairwise(waits)), waits
        assert waits[-1] >= 10
        maps.client.cut_off = False
        maps.informer.start()
        eventually(lambda: maps.gone("none"), "the watch runs")


def test_a_watch_that_nothing_comes_from_ends(api_server: ApiServer, namespace: str) -> None:
    """The connection may be dead; the API server tells its version every minute."""
    with kept(api_server, namespace) as maps:
        maps.informer.start()
        eventually(lambda: maps.client.quiet_seconds, "it is opened")
        assert 60 < maps.client.quiet_seconds < 90
    began = time.monotonic()
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert list(api_server.client.watch(path, {"labelSelector": "kept=yes"}, 60, quiet_seconds=1)) == []
    assert time.monotonic() - began < 30
