"""Which running query can flush itself: a table; and what becomes of one whose fence fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from spark_drain_agent.checkpoint.fence import is_fence
from spark_drain_agent.checkpoint.journal import Journal
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.queries.flush_in_place import RunningFlushFacts, flush_running, running_flush_obstacle
from spark_drain_agent.spark_internals.live_query import LiveQuery

from tests.agent.checkpoint.test_steps import JOURNAL
from tests.agent.folder import Folder

READY = RunningFlushFacts(
    setting="Auto",
    to_own_sink=True,
    exports_state=False,
    interval_ms=0,
    now_ms=1_700_000_000_000,
    no_data_batches=True,
    processing_time=False,
    planned_a_batch=True,
    retained=100,
    state_unsure=False,
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"setting": "WorkCopy"}, "spark.sparkdrain.flush is 'WorkCopy'"),
        ({"to_own_sink": False}, "not to go to its own sink"),
        ({"exports_state": True}, "exported first"),
        ({"interval_ms": None}, "no interval"),
        ({"processing_time": True}, "more than one batch"),
        ({"no_data_batches": False}, "noDataMicroBatches"),
        ({"planned_a_batch": False}, "no batch since"),
        ({"retained": 1}, "minBatchesToRetain is 1"),
        ({"retained": 2}, ""),
        ({"state_unsure": True}, "does not tell"),
        ({"interval_ms": 500}, ""),
        ({"interval_ms": 10_000, "now_ms": 1_700_000_009_000}, ""),
        ({"interval_ms": 10_000, "now_ms": 1_700_000_008_999}, "1001 ms away"),
        ({"interval_ms": 600_000}, "ms away"),
    ],
)
def test_obstacles(change: dict[str, Any], words: str) -> None:
    obstacle = running_flush_obstacle(replace(READY, **change))
    assert words in obstacle
    assert bool(words) == bool(obstacle)


class Frozen:
    """A query that would plan a batch as soon as its lock is free."""

    thread_alive = True

    def __init__(self) -> None:
        self.locked = self.terminated = False

    @contextmanager
    def progress_lock(self, _: object = None) -> Iterator[None]:
        self.locked = True
        try:
            yield
        finally:
            self.locked = False
            assert self.terminated, "its next batch would be taken for the flush"

    def terminate(self) -> None:
        assert self.locked
        self.terminated = True


class Deaf(Folder):
    """A store that does what it is asked for, and whose answer is lost."""

    def write(self, name: str, text: str) -> None:
        super().write(name, text)
        if name == "metadata" and is_fence(text):
            raise OSError("no answer")


def test_a_query_whose_fence_may_stand_plans_no_other_batch(tmp_path: Path) -> None:
    files, live = Deaf(tmp_path), Frozen()
    for name in ("offsets/7", "commits/7", "metadata"):
        files.write(name, "v1\n{}")

    def begin(newest: int | None) -> Journal:
        assert newest == 7
        return JOURNAL

    with pytest.raises(OSError, match="no answer"):
        flush_running(cast(LiveQuery, live), Checkpoint(cast(Any, files)), begin, 7)
    assert live.terminated
