"""Who may start on a checkpoint whose first batch after a drain is running."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal
from spark_drain_agent.checkpoint.lease import Lease
from spark_drain_agent.queries import first_start
from spark_drain_agent.queries.tracked import TrackedQuery

from tests.agent.folder import files_in


class _Lease:
    def __init__(self) -> None:
        self.ends: list[str] = []

    def release(self) -> None:
        self.ends.append("released")

    def release_after(self, _: BaseException | None) -> None:
        self.release()

    def fall_silent(self) -> None:
        self.ends.append("silent")


@pytest.mark.parametrize(("jvm_ended", "looks", "end"), [(False, 3, "released"), (True, 1, "silent")])
def test_a_store_that_does_not_answer_once_ends_no_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jvm_ended: bool, looks: int, end: str
) -> None:
    """Another driver would make the empty state anew, and take away what the first batch has written."""
    answers: Iterator[bool | OSError] = iter([OSError("503 SlowDown"), True, False])
    looked: list[bool | OSError] = []

    def awaits(files: CheckpointFiles, journal: Journal) -> bool:
        looked.append(answer := next(answers))
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(first_start, "awaits_first_batch", awaits)
    monkeypatch.setattr(first_start, "_LOOK_SECONDS", 0.01)
    lease, internals = _Lease(), SimpleNamespace(stop_returned=False, jvm_ended=jvm_ended)
    live = SimpleNamespace(planned_a_batch=True)
    tracked = SimpleNamespace(internals=internals, ended=False, query=object(), live=live, refused=False, label="query 'q'")
    first_start._keep_until_committed(
        cast(Lease, lease), cast(TrackedQuery, tracked), files_in(tmp_path), cast(Journal, None), lambda: True
    )
    assert (len(looked), lease.ends) == (looks, [end])


def test_the_lease_ends_with_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A next SparkContext of the driver waits for its end."""

    def awaits(files: CheckpointFiles, journal: Journal) -> bool:
        raise ValueError("not an offset log")

    monkeypatch.setattr(first_start, "awaits_first_batch", awaits)
    lease, internals = _Lease(), SimpleNamespace(stop_returned=False, jvm_ended=False)
    tracked = SimpleNamespace(internals=internals, ended=False, query=None, refused=False, label="query 'q'")
    with pytest.raises(ValueError, match="not an offset log"):
        first_start._keep_until_committed(
            cast(Lease, lease), cast(TrackedQuery, tracked), files_in(tmp_path), cast(Journal, None), lambda: True
        )
    assert lease.ends == ["silent"]


def test_a_query_without_input_asks_its_store_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have none for days, and each look at an object store is a request."""
    planned, looked = iter([False] * 5 + [True] * 3), iter([True, True, False])
    monkeypatch.setattr(first_start, "awaits_first_batch", lambda _files, _journal: next(looked))
    monkeypatch.setattr(first_start, "_LOOK_SECONDS", 0.01)

    class Live:
        @property
        def planned_a_batch(self) -> bool:
            return next(planned)

    lease, internals = _Lease(), SimpleNamespace(stop_returned=False, jvm_ended=False)
    tracked = SimpleNamespace(internals=internals, ended=False, query=object(), live=Live(), refused=False, label="query 'q'")
    first_start._keep_until_committed(
        cast(Lease, lease), cast(TrackedQuery, tracked), files_in(tmp_path), cast(Journal, None), lambda: True
    )
    assert (list(planned), list(looked), lease.ends) == ([], [], ["released"])


def test_the_lease_ends_where_no_thread_can_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program may start its query again once there are threads: in the same process, whose own lease would keep it off."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    lease = _Lease()
    monkeypatch.setattr(first_start, "awaits_first_batch", lambda _files, _journal: True)
    monkeypatch.setattr(first_start, "acquire_lease", lambda _files, _internals: lease)
    monkeypatch.setattr(first_start, "_prepare", lambda *_: None)
    monkeypatch.setattr(threading.Thread, "start", refused)
    tracked = SimpleNamespace(internals=None, checkpoint_files=lambda: files_in(tmp_path))
    with pytest.raises(RuntimeError, match="can't start new thread"):
        first_start.prepare_first_start(cast(TrackedQuery, tracked), cast(Journal, None), lambda: True, None)
    assert lease.ends == ["released"]


@pytest.mark.parametrize(
    ("sink", "own", "taken"),
    [
        ("file:/out", "file:/out", True),
        ("file:/out", "delta to /table", True),
        ("file:/empty", "file:/out", False),
        ("console", "file:/out", False),
        ("noop", "noop", False),
        ("kafka to events", "kafka to events", False),
        ("kafka to events", "file:/out", None),
        ("delta to file:/table", "delta to file:/table", None),
        ("foreachbatch", "file:/out", None),
    ],
)
def test_what_a_sink_has_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: str, own: str, taken: bool | None) -> None:
    monkeypatch.setattr(first_start, "logged_batches", lambda folder: [7] if folder.root == "/out" else [])
    assert first_start._has_taken(files_in(tmp_path), own, sink, 7) is taken


@pytest.mark.parametrize(
    ("folder", "writer", "sink"),
    [
        ("file:/out", {"source": "parquet", "path": "/out"}, "file:/out"),
        (None, {"source": "parquet", "table": "events"}, "parquet to events"),
        ("", {"source": "sqlite", "path": "/shop.db", "options": {"table": "a"}}, "sqlite to /shop.db a"),
        ("", {"source": "sql", "path": "sql://db/shop"}, "sql to sql://db/shop"),
        ("", {"source": "h2", "path": "h2:x;PASSWORD=", "options": {"dbtable": "a"}}, "h2 to h2:x;PASSWORD= a"),
        ("", {"source": "kafka", "options": {"topic": "events"}}, "kafka to events"),
        ("", {"source": "kafka", "options": {"kafka.linger.ms": "5"}}, "kafka"),
        ("", {"source": "foreachBatch", "options": {"batchSize": "1"}}, "foreachbatch"),
        ("", {"source": "mongodb", "options": {"database": "shop", "collection": "a", "batchSize": "1000"}}, "mongodb to shop.a"),
    ],
)
def test_what_a_query_writes_to(monkeypatch: pytest.MonkeyPatch, folder: str | None, writer: dict[str, Any], sink: str) -> None:
    monkeypatch.setattr(first_start, "sink_place", lambda _, captured: captured.path or "")
    options = writer.pop("options", {})
    captured = SimpleNamespace(**{"path": None, "table": None, "option": options.get, **writer})
    tracked = SimpleNamespace(captured=captured, internals=None)
    assert first_start._sink(cast(TrackedQuery, tracked), folder) == sink
