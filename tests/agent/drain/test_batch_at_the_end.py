"""A query whose next trigger comes while the drain looks at its logs, and so waits for its lock with a batch to plan."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from spark_drain_agent.spark_internals.live_query import LiveQuery

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Feed, eventually, exactly, ids_in, logged
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(300)]

_INTERVAL = 40
_TERMINATE = LiveQuery.terminate


def test_the_batch_that_it_plans_is_not_taken_for_the_flush(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed, checkpoint = Feed(tmp_path / "input"), tmp_path / "checkpoint"
    feed.add(1)
    places: list[str] = []

    def terminate_late(live: LiveQuery) -> None:
        places.append(eventually(lambda: live.waits_for_lock_in(["constructNextBatch"]), "the next trigger"))
        _TERMINATE(live)

    monkeypatch.setattr(LiveQuery, "terminate", terminate_late)
    eventually(lambda: time.time() % _INTERVAL < _INTERVAL / 2, "a time far from the next trigger")
    writer = counted(read(warm.session, tmp_path)).writeStream.option("checkpointLocation", str(checkpoint))
    writer.outputMode("append").trigger(processingTime=f"{_INTERVAL} seconds").foreachBatch(to_files(tmp_path / "out")).start()
    eventually(lambda: 0 in logged(checkpoint, "commits"), "the first batch")
    assert logged(checkpoint, "offsets") == [0]
    warm.drain()
    assert places == ["constructNextBatch"]
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
