"""What is kept of the watches."""

from typing import Any

import pytest
from spark_drain_operator.storage.watch_cache import Collection, WatchCache

PODS = Collection("v1", "pods", holds=lambda body: body.get("phase") != "ended", index=lambda body: str(body.get("app", "")))


def pod(name: str, version: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": version}, **fields}


@pytest.fixture
def cache() -> WatchCache:
    cache = WatchCache()
    cache.watch(PODS)
    cache.heard("pods", "ns")
    return cache


def version(cache: WatchCache, name: str = "a") -> str:
    found = cache.get("pods", "ns", name)
    return found["metadata"]["resourceVersion"] if found else ""


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([("put", "9"), ("put", "10")], "10"),
        ([("put", "10"), ("put", "9")], "10"),  # an event that came after the answer to a later write
        ([("put", "9"), ("remove", "10")], ""),
        ([("put", "9"), ("remove", "10"), ("put", "9")], ""),  # an answer that came after the deletion
        ([("put", "9"), ("remove", "10"), ("put", "11")], "11"),  # another one of that name
        ([("put", "11"), ("remove", "10")], "11"),
        ([("put", "no number")], ""),
    ],
)
def test_the_newest_version_counts(cache: WatchCache, told: list[tuple[str, str]], expected: str) -> None:
    for what, number in told:
        getattr(cache, what)("pods", pod("a", number))
    assert version(cache) == expected


def test_what_is_not_selected_any_more_is_forgotten(cache: WatchCache) -> None:
    cache.put("pods", pod("a", "1"))
    cache.put("pods", pod("a", "2", phase="ended"))
    assert cache.lacks("pods", "ns", "a")


def test_a_list_takes_the_place_of_what_was_known(cache: WatchCache) -> None:
    """What was deleted while nobody watched is told as well; what was written after the list was made stays."""
    for name in ("kept", "changed", "gone"):
        cache.put("pods", pod(name, "1"))
    cache.put("pods", pod("later", "9"))
    assert [cache.put("pods", body) for body in (pod("kept", "1"), pod("changed", "2"), pod("new", "3"))] == [False, True, True]
    gone = cache.keep_only("pods", "ns", {("ns", "kept"), ("ns", "changed"), ("ns", "new")}, 5)
    assert [body["metadata"]["name"] for body in gone] == ["gone"]
    assert [version(cache, name) for name in ("kept", "changed", "new", "gone", "later")] == ["1", "2", "3", "", "9"]


@pytest.mark.parametrize(
    ("known", "listed", "contradicted"),
    [("40", 95, False), ("90", 95, True), ("95", 95, True), ("96", 95, False), ("no number", 95, False)],
)
@pytest.mark.parametrize("what", ["put", "remove"])
def test_a_list_that_shows_an_older_object_than_was_known_by_then(
    cache: WatchCache, what: str, known: str, listed: int, contradicted: bool
) -> None:
    getattr(cache, what)("pods", pod("a", known))
    assert cache.contradicted("pods", pod("a", "40"), listed) is contradicted


def test_nothing_is_believed_once_the_server_was_restored(cache: WatchCache) -> None:
    cache.watch(Collection("v1", "drains"))
    cache.heard("drains", "", always=True)
    cache.put("drains", pod("a", "90"))
    cache.put("pods", pod("a", "90"))
    cache.versions.checked("pods", lambda: {"metadata": {"resourceVersion": "89"}})
    assert cache.get("drains", "ns", "a") is None
    assert not cache.lacks("pods", "ns", "a")


def test_objects_are_found_by_their_index(cache: WatchCache) -> None:
    cache.put("pods", pod("b", "1", app="x"))
    cache.put("pods", pod("a", "2", app="x"))
    cache.put("pods", pod("c", "3", app="y"))
    assert [body["metadata"]["name"] for body in cache.together("pods", "ns", "x") or []] == ["a", "b"]
    cache.put("pods", pod("a", "4", app="y"))
    assert [body["metadata"]["name"] for body in cache.together("pods", "ns", "y") or []] == ["a", "c"]
    assert cache.together("pods", "ns", "z") == []


def test_what_is_not_watched_has_to_be_asked_for(cache: WatchCache) -> None:
    cache.put("pods", pod("a", "1"))
    assert cache.together("pods", "other", "") is None
    assert not cache.lacks("pods", "other", "a")
    cache.lost("pods", "ns")
    assert cache.get("pods", "ns", "a") is None
    assert cache.together("pods", "ns", "") is None
    assert not cache.answered
    cache.heard("pods", "")  # everywhere
    assert version(cache) == "1"
    assert cache.answered


def test_what_was_never_watched_is_not_believed_on_a_machine_that_has_just_started() -> None:
    """Its clock begins at 0."""
    cache = WatchCache(lambda: 42.0)
    cache.watch(PODS)
    assert cache.together("pods", "ns", "app") is None
    assert not cache.lacks("pods", "ns", "a")


def test_a_silent_watch_is_not_believed() -> None:
    now = [0.0]
    cache = WatchCache(lambda: now[0])
    cache.watch(PODS)
    cache.heard("pods", "ns")
    cache.put("pods", pod("a", "1"))
    now[0] = 170.0
    assert version(cache) == "1"
    now[0] = 190.0
    assert version(cache) == ""
    cache.heard("pods", "ns", always=True)
    now[0] = 9e9
    assert version(cache) == "1"


def test_a_pass_can_ask_for_everything(cache: WatchCache) -> None:
    cache.put("pods", pod("a", "1"))
    with cache.reading():
        assert version(cache) == "1"
        assert cache.answered
        with cache.bypassed():
            assert version(cache) == ""
            assert not cache.answered
        assert cache.answered
    assert not cache.answered


def test_nobody_changes_what_is_kept(cache: WatchCache) -> None:
    cache.put("pods", pod("a", "1"))
    found = cache.get("pods", "ns", "a")
    assert found is not None
    found["metadata"]["resourceVersion"] = "2"
    assert version(cache) == "1"
