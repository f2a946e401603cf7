"""A query whose next trigger comes while the drain looks at its logs, and so waits for its lock with a batch to plan."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from spark_drain_agent.checkpoint.fence import set_fence
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.drain import committed_query
from spark_drain_agent.queries import flush_in_place
from spark_drain_agent.queries.flush_in_place import flush_running
from spark_drain_agent.spark_internals.live_query import LiveQuery

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Feed, eventually, exactly, ids_in, logged
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(300)]

_FAR_MS = 22_000
_TERMINATE = LiveQuery.terminate


def test_nor_where_the_answer_to_the_fence_is_lost(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[str] = []

    def raise_late(live: LiveQuery, checkpoint: Checkpoint, *arguments: Any) -> Journal | None:
        def fence_late(files: CheckpointFiles, journal: Journal) -> None:
            monkeypatch.undo()
            set_fence(files, journal)
            places.append(eventually(lambda: live.waits_for_lock_in(["constructNextBatch"]), "the next trigger"))
            raise OSError("no answer")

        monkeypatch.setattr(flush_in_place, "set_fence", fence_late)
        return flush_running(live, checkpoint, *arguments)

    monkeypatch.setattr(committed_query, "flush_running", raise_late)
    monkeypatch.setattr(flush_in_place, "_LONGEST_WAIT_MS", 2 * _FAR_MS)
    feed = _drained(warm, tmp_path)
    assert places == ["constructNextBatch"]
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def test_the_batch_that_it_plans_is_not_taken_for_the_flush(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[str] = []

    def terminate_late(live: LiveQuery) -> None:
        places.append(eventually(lambda: live.waits_for_lock_in(["constructNextBatch"]), "the next trigger"))
        _TERMINATE(live)

    monkeypatch.setattr(LiveQuery, "terminate", terminate_late)
    feed = _drained(warm, tmp_path)
    assert places == ["constructNextBatch"]
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def _drained(warm: Warm, folder: Path) -> Feed:
    """Drain a query that has a batch to plan at its next trigger, which is far away."""
    feed, checkpoint = Feed(folder / "input"), folder / "checkpoint"
    feed.add(1)
    writer = counted(read(warm.session, folder)).writeStream.option("checkpointLocation", str(checkpoint))
    writer.outputMode("append").trigger(processingTime=f"{_interval()} milliseconds").foreachBatch(to_files(folder / "out")).start()
    eventually(lambda: 0 in logged(checkpoint, "commits"), "the first batch")
    assert logged(checkpoint, "offsets") == [0]
    warm.drain()
    return feed


def _interval() -> int:
    """Return an interval in milliseconds whose next trigger is far away: Spark counts them from 1970."""
    now = time.time_ns() // 1_000_000
    return next(each for each in count(_FAR_MS) if each - now % each > _FAR_MS - 500)
