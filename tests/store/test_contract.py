"""What every metadata store keeps: the same tests over memory, a folder, and a ConfigMap of a real API server."""

import threading
import time
from collections.abc import Callable

import pytest
from spark_drain_store import ConflictError, EntryTooLargeError, MetadataStore
from spark_drain_store.protocol import MAX_TOTAL_BYTES
from spark_drain_store.topics import TopicStore

Opener = Callable[[], MetadataStore]


class TestContract:
    def test_an_absent_store_is_empty(self, opener: Opener) -> None:
        snapshot = opener().read()
        assert (snapshot.version, dict(snapshot.entries)) == ("", {})

    def test_what_is_written_is_read_by_others(self, opener: Opener) -> None:
        version = opener().write({"a": "1", "b": "zwei \N{SNOWMAN}\n"})
        snapshot = opener().read()
        assert dict(snapshot.entries) == {"a": "1", "b": "zwei \N{SNOWMAN}\n"}
        assert snapshot.version == version

    def test_several_keys_change_at_once(self, opener: Opener) -> None:
        store = opener()
        store.write({"a": "1", "b": "2"})
        store.write({"a": None, "b": "3", "c": "4", "never": None})
        assert dict(store.read().entries) == {"b": "3", "c": "4"}

    def test_the_first_of_two_writers_wins(self, opener: Opener) -> None:
        first, second = opener(), opener()
        first.write({"a": "0"})
        seen = first.read().version
        assert second.read().version == seen
        first.write({"a": "1"}, if_version=seen)
        with pytest.raises(ConflictError):
            second.write({"a": "2"}, if_version=seen)
        assert dict(second.read().entries) == {"a": "1"}

    def test_the_first_of_two_creators_wins(self, opener: Opener) -> None:
        opener().write({"a": "1"}, if_version="")
        with pytest.raises(ConflictError):
            opener().write({"b": "2"}, if_version="")
        assert dict(opener().read().entries) == {"a": "1"}

    def test_an_unknown_version_conflicts(self, opener: Opener) -> None:
        with pytest.raises(ConflictError):
            opener().write({"a": "1"}, if_version="12345")

    def test_a_write_under_the_version_it_read_succeeds(self, opener: Opener) -> None:
        store = opener()
        version = store.write({"a": "1"})
        for number in range(5):
            version = store.write({"a": str(number)}, if_version=version)
        assert dict(store.read().entries) == {"a": "4"}

    def test_racing_writers_lose_nothing(self, opener: Opener) -> None:
        opener().write({"count": "0"})

        def increment() -> None:
            store, done = opener(), 0
            while done < 10:
                snapshot = store.read()
                try:
                    store.write({"count": str(int(snapshot.entries["count"]) + 1)}, if_version=snapshot.version)
                except ConflictError:
                    continue
                done += 1

        threads = [threading.Thread(target=increment) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert opener().read().entries["count"] == "30"

    def test_a_watch_wakes_up_on_a_change(self, opener: Opener) -> None:
        watcher, writer = opener(), opener()
        version = writer.write({"a": "1"})
        timer = threading.Timer(0.3, lambda: writer.write({"a": "2"}))
        timer.start()
        began = time.monotonic()
        snapshot = watcher.watch(version, 20.0)
        timer.join()
        assert snapshot is not None
        assert dict(snapshot.entries) == {"a": "2"}
        assert time.monotonic() - began < 5.0

    def test_a_watch_wakes_up_when_the_store_comes_to_be(self, opener: Opener) -> None:
        timer = threading.Timer(0.3, lambda: opener().write({"a": "1"}))
        timer.start()
        began = time.monotonic()
        snapshot = opener().watch("", 20.0)
        timer.join()
        assert snapshot is not None
        assert dict(snapshot.entries) == {"a": "1"}
        assert time.monotonic() - began < 5.0

    def test_a_watch_does_not_miss_what_happened_before_it(self, opener: Opener) -> None:
        store = opener()
        version = store.write({"a": "1"})
        store.write({"a": "2"})
        snapshot = store.watch(version, 10.0)
        assert snapshot is not None
        assert dict(snapshot.entries) == {"a": "2"}

    def test_a_watch_without_a_change_ends(self, opener: Opener) -> None:
        store = opener()
        version = store.write({"a": "1"})
        began = time.monotonic()
        assert store.watch(version, 1.0) is None
        assert 0.8 < time.monotonic() - began < 6.0

    def test_closing_ends_a_watch(self, opener: Opener) -> None:
        store = opener()
        version = store.write({"a": "1"})
        timer = threading.Timer(0.5, store.close)
        timer.start()
        began = time.monotonic()
        assert store.watch(version, 30.0) is None
        timer.join()
        assert time.monotonic() - began < 5.0

    def test_a_store_that_grows_beyond_its_limit_is_refused_and_unchanged(self, opener: Opener) -> None:
        store = opener()
        half = "x" * (MAX_TOTAL_BYTES // 2 - 100)
        store.write({"a": half})
        store.write({"b": half})
        with pytest.raises(EntryTooLargeError):
            store.write({"c": "y" * 4096})
        assert set(store.read().entries) == {"a", "b"}
        with pytest.raises(EntryTooLargeError):
            store.write({"b": None, "c": "y" * (MAX_TOTAL_BYTES + 1)})
        assert set(store.read().entries) == {"a", "b"}

    def test_a_store_beyond_its_limit_can_be_emptied(self, opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
        store = opener()
        store.write({"a": "x" * 2000, "b": "y" * 2000})
        monkeypatch.setattr("spark_drain_store.protocol.MAX_TOTAL_BYTES", 1000)
        store.write({"a": None})
        assert store.read().entries.keys() == {"b"}

    def test_topics_do_not_see_each_other(self, opener: Opener) -> None:
        drains, placements = TopicStore(opener(), "drain-v1"), TopicStore(opener(), "placement-v1")
        drains.write({"u": "drain"})
        placements.write({"u": "placement"})
        assert dict(drains.read().entries) == {"u": "drain"}
        assert dict(placements.read().entries) == {"u": "placement"}
        drains.write({"u": None})
        assert dict(placements.read().entries) == {"u": "placement"}
        assert dict(opener().read().entries) == {"placement-v1.u": "placement"}

    def test_topics_share_one_version(self, opener: Opener) -> None:
        drains, placements = TopicStore(opener(), "drain-v1"), TopicStore(opener(), "placement-v1")
        seen = drains.read().version
        placements.write({"u": "placement"})
        with pytest.raises(ConflictError):
            drains.write({"u": "drain"}, if_version=seen)
