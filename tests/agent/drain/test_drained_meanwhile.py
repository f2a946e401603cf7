"""A driver that stood still between its look at a checkpoint and its lease on it, while another one drained it, or ran a batch."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import JournalStep, write_journal
from spark_drain_agent.checkpoint.lease import Lease, acquire_lease
from spark_drain_agent.checkpoint.logs import Checkpoint
from spark_drain_agent.drain import after_commit, committed_query
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.checkpoint.test_steps import JOURNAL
from tests.agent.harness import Feed, eventually, exactly, ids_in
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def way(warm: Warm, request: pytest.FixtureRequest) -> Iterator[None]:
    warm.session.conf.set(FLUSH_CONF, request.param)
    yield
    warm.session.conf.unset(FLUSH_CONF)


@pytest.mark.parametrize("way", ["Auto", "WorkCopy"], indirect=True)
def test_it_flushes_nothing(way: None, warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Feed(tmp_path / "input").add(3)
    panes: Counter[int] = Counter()

    def write(batch: DataFrame, batch_id: int) -> None:
        panes[batch_id] += batch.agg(F.count("*")).first()[0]  # type: ignore[index]

    writer = counted(read(warm.session, tmp_path)).writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.foreachBatch(write).start().processAllAvailable()
    before, asked = dict(panes), list[str]()

    def acquired_late(files: CheckpointFiles, *others: Any) -> Lease:
        eventually(lambda: asked, "the drain to be asked for")
        if len(asked) == 1:
            asked.append("")
            checkpoint, newest = Checkpoint(files), Checkpoint(files).newest_commit
            assert newest is not None
            done = replace(JOURNAL, drain_id=asked[0], step=JournalStep.DONE, checkpoint_policy="Continue", batch_id=newest, sources=())
            write_journal(files, replace(done, metadata=checkpoint.metadata or "", watermark_ms=checkpoint.watermark_after(newest)))
        return acquire_lease(files, *others)

    monkeypatch.setattr(committed_query, "acquire_lease", acquired_late)
    with warm.requested() as drain_id:
        asked.append(drain_id)
        drain = warm.drains.reaches(drain_id, "Drained")
    assert dict(panes) == before, "the other driver has flushed"
    assert drain["queries"][0]["checkpointPolicy"] == "Continue"


def test_a_checkpoint_without_metadata_is_not_passed_over(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after_commit, "_RETRY_SECONDS", (0.1,))
    feed, metadata = Feed(tmp_path / "input"), tmp_path / "checkpoint" / "metadata"
    feed.add(3)
    writer = counted(read(warm.session, tmp_path)).writeStream.option("checkpointLocation", str(metadata.parent))
    query = writer.foreachBatch(to_files(tmp_path / "out")).start()
    query.processAllAvailable()
    metadata.unlink()
    (metadata.parent / ".metadata.crc").unlink()
    with warm.requested() as asked:
        stalled = warm.drains.reaches(asked, "Stalled")
        assert "/metadata is missing, by which Spark knows the query again: write it anew" in stalled["message"]
        metadata.write_text(json.dumps({"id": query.id}))
        eventually(lambda: warm.drains.show(asked)["state"] == "Drained", "the drain to go on")
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


@pytest.mark.parametrize("way", ["Auto", "WorkCopy"], indirect=True)
def test_a_batch_that_another_driver_has_run_is_not_taken_for_the_flush(
    way: None, warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(tmp_path / "input")
    feed.add(3)
    panes: Counter[int] = Counter()

    def write(batch: DataFrame, batch_id: int) -> None:
        panes[batch_id] += batch.agg(F.sum("count")).first()[0] or 0  # type: ignore[index]

    checkpoint = tmp_path / "checkpoint"
    writer = counted(read(warm.session, tmp_path)).writeStream.option("checkpointLocation", str(checkpoint))
    writer.foreachBatch(write).start().processAllAvailable()
    ran: list[int] = []

    def acquired_late(files: CheckpointFiles, *others: Any) -> Lease:
        if not ran:
            newest = Checkpoint(files).newest_commit
            assert newest is not None
            ran.append(newest + 1)
            for log in ("offsets", "commits"):
                files.write(f"{log}/{newest + 1}", files.read(f"{log}/{newest}") or "")
            for delta in checkpoint.glob(f"state/0/*/{newest + 1}.delta"):
                shutil.copy2(delta, delta.with_name(f"{newest + 2}.delta"))
        return acquire_lease(files, *others)

    monkeypatch.setattr(committed_query, "acquire_lease", acquired_late)
    with warm.requested() as drain_id:
        drain = warm.drains.reaches(drain_id, "Drained")
    (last,) = ran
    assert (drain["queries"][0]["lastBatchId"], drain["queries"][0]["flushBatchId"]) == (last, last + 1)
    assert panes[last + 1] > 0
    assert sum(panes.values()) == len(feed.ids)
