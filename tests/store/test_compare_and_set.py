"""What was read decides what is written, whoever else writes."""

from collections.abc import Mapping

import pytest
from spark_drain_store import ConflictError, Snapshot
from spark_drain_store.compare_and_set import compare_and_set
from spark_drain_store.memory import MemoryStore


def test_a_change_that_somebody_overtakes_is_decided_anew() -> None:
    store, seen = MemoryStore(), []

    def change(snapshot: Snapshot) -> Mapping[str, str | None]:
        seen.append(dict(snapshot.entries))
        if len(seen) == 1:
            store.write({"theirs": "1"})
        return {"ours": str(len(snapshot.entries))}

    compare_and_set(store, change)
    assert seen == [{}, {"theirs": "1"}]
    assert dict(store.read().entries) == {"theirs": "1", "ours": "1"}


def test_without_a_change_nothing_is_written() -> None:
    store = MemoryStore()
    before = store.write({"a": "1"})
    compare_and_set(store, lambda _: {})
    assert store.read().version == before


def test_what_the_decision_raises_ends_it() -> None:
    def change(_: Snapshot) -> Mapping[str, str | None]:
        raise LookupError("no")

    with pytest.raises(LookupError):
        compare_and_set(MemoryStore(), change)


def test_it_gives_up_where_others_write_all_the_time() -> None:
    store = MemoryStore()

    def change(snapshot: Snapshot) -> Mapping[str, str | None]:
        store.write({"theirs": snapshot.version})
        return {"ours": ""}

    with pytest.raises(ConflictError, match="try again"):
        compare_and_set(store, change)
    assert "ours" not in store.read().entries
