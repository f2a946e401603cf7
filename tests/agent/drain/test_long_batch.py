"""A drain that is requested while a batch runs for long: it waits for the batch, as long as it may."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_store import DrainNotification, open_channel
from spark_drain_store.drains import write_notification

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Feed, eventually, exactly, ids_in, newest
from tests.agent.warm import Warm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def start(warm: Warm, base: Path, name: str = "long", /, **trigger: bool) -> StreamingQuery:
    writer = counted(read(warm.session, base)).writeStream.queryName(name).option("checkpointLocation", str(base / "checkpoint"))
    writer = writer.trigger(**trigger) if trigger else writer
    return writer.foreachBatch(to_files(base / "out", block=base / "block")).start()


def test_what_has_come_to_its_end_meanwhile_is_not_said_to_be_waited_for(warm: Warm, tmp_path: Path) -> None:
    bases = {name: tmp_path / name for name in ("long", "short")}
    for name, base in bases.items():
        base.mkdir()
        (base / "block").touch()
        Feed(base / "input").add(1)
        start(warm, base, name)
    for base in bases.values():
        eventually((base / "blocked").exists, "a batch to run")
    with warm.requested() as asked:
        stopping = warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
        assert stopping["message"] == "waits for batch 0 of query 'long', batch 0 of query 'short'"
        (bases["short"] / "block").unlink()
        eventually(lambda: warm.drains.show(asked)["message"] == "waits for batch 0 of query 'long'", "only one to be waited for", 30)
        (bases["long"] / "block").unlink()
        warm.drains.reaches(asked, "Drained")


@pytest.mark.parametrize(
    ("trigger", "waited_for"),
    [({}, "batch 0 of query 'long'"), ({"availableNow": True}, "the rest of query 'long', which is bounded")],
    ids=["unbounded", "bounded"],
)
def test_what_runs_is_waited_for_until_the_deadline_and_then_left_alone(
    warm: Warm, tmp_path: Path, trigger: dict[str, bool], waited_for: str
) -> None:
    """The first drain's deadline is shorter than the batch; the second one has none, and ends when the batch does."""
    feed, block, checkpoint = Feed(tmp_path / "input"), tmp_path / "block", tmp_path / "checkpoint"
    feed.add(3)
    block.touch()
    query = start(warm, tmp_path, **trigger)
    eventually((tmp_path / "blocked").exists, "a batch to run")
    now, metadata = datetime.now(UTC), (checkpoint / "metadata").read_text()
    hasty = DrainNotification(drain_id=str(uuid.uuid4()), created_at=now, deadline=now + timedelta(seconds=2))
    with warm.agent.gate.user_waits():
        write_notification(open_channel(warm.drains.location), hasty)
        stopping = warm.drains.reaches(hasty.drain_id, "Stopping", reason="BatchRunning")
        assert stopping["message"] == f"waits for {waited_for}"
        drain = warm.drains.reaches(hasty.drain_id, "Failed")
        assert drain["reason"] == "BatchStillRunning"
        assert f"the queries run on; still running: {waited_for}." in drain["message"]
        assert [query["state"] for query in drain["queries"]] == ["Running"]
    warm.let_go()
    assert query.isActive
    assert (checkpoint / "metadata").read_text() == metadata
    assert not (checkpoint / "_drain").exists()
    assert newest(checkpoint, "commits") < newest(checkpoint, "offsets") == 0

    with warm.requested() as asked:
        warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
        block.unlink()
        warm.drains.reaches(asked, "Drained")
    assert ids_in(tmp_path / "out") == exactly(range(50) if not trigger else feed.ids)
    start(warm, tmp_path).processAllAvailable()
    warm.drain()
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
