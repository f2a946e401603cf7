"""Which running query can flush itself: a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from spark_drain_agent.queries.flush_in_place import RunningFlushFacts, running_flush_obstacle

READY = RunningFlushFacts(
    setting="Auto",
    to_own_sink=True,
    exports_state=False,
    interval_ms=0,
    now_ms=1_700_000_000_000,
    no_data_batches=True,
    processing_time=False,
    planned_a_batch=True,
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
