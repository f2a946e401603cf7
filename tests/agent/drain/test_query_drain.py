"""Drivers with one query each: modes and checkpoint policies, triggers, and how an application waits or leaves."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.harness import Drains, Driver, Feed, eventually, exactly, ids_in, logged, newest, rows_in

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

ROCKSDB = {"spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"}

# Permissions mean nothing to root, unless it is root without these capabilities.
HEEDFUL = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()

Start = Callable[..., Driver]


@pytest.fixture
def start() -> Iterator[Start]:
    drivers: list[Driver] = []

    def begin(script: str, base: Path, *arguments: str, **options: Any) -> Driver:
        drivers.append(Driver(script, base, *arguments, **options))
        return drivers[-1]

    yield begin
    for driver in drivers:
        driver.close()


def settled_at(checkpoint: Path, files: int) -> Callable[[], bool]:
    """Return whether as many input files are read and committed; one batch reads one file, and a batch without input may follow."""

    def look() -> bool:
        read = {name for log in (checkpoint / "sources/0").glob("[0-9]*") for name in log.read_text().split('"') if name.endswith(".json")}
        return len(read) == files and newest(checkpoint, "offsets") == newest(checkpoint, "commits")

    return look


def test_permission_is_denied_until_it_is_given(tmp_path: Path, start: Start) -> None:
    checkpoint, feed, drains = tmp_path / "checkpoint", Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add(3)
    driver = start("windows.py", tmp_path, store=drains, prefix=HEEDFUL)
    eventually(settled_at(checkpoint, 3), "three files", alive=driver)
    kept = {
        path: path.read_bytes()
        for path in (checkpoint / "metadata", *checkpoint.glob("offsets/[0-9]*"), *checkpoint.glob("commits/[0-9]*"))
    }
    checkpoint.chmod(0o555)
    drain_id = drains.write()
    stalled = drains.reaches(drain_id, "Stalled", driver=driver)
    assert stalled["reason"] == "CheckpointUnwritable"
    assert f"{checkpoint}/_drain could not be created: does the driver have permission to write there?" in stalled["message"]
    assert {path: path.read_bytes() for path in kept} == kept
    assert ids_in(tmp_path / "out").total() < len(feed.ids)
    checkpoint.chmod(0o755)
    eventually(lambda: drains.show(drain_id)["state"] == "Drained", "the drain to go on", alive=driver)
    drains.clean_up()
    assert driver.wait() == 0, driver.tail()
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def test_stop_keeps_state_and_keep_stays_fenced(tmp_path: Path, start: Start) -> None:
    """Three starts, with RocksDB state: stopped; gone on and drained with Keep, at first with a failing flush; refused by plain Spark."""
    checkpoint, feed, drains = tmp_path / "checkpoint", Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add(3)
    first = start("windows.py", tmp_path, store=drains, confs=ROCKSDB)
    eventually(settled_at(checkpoint, 3), "three files", alive=first)
    metadata = (checkpoint / "metadata").read_text()
    drain = drains.reaches(drains.write(mode="Stop"), "Drained", driver=first)
    assert [(query["name"], query["checkpointPolicy"], query["flushBatchId"]) for query in drain["queries"]] == [("windows", "", None)]
    assert first.running
    assert not (tmp_path / "main-returned").exists()
    emitted = ids_in(tmp_path / "out")
    assert 0 < emitted.total() < len(feed.ids)
    drains.clean_up()
    assert first.wait() == 0, first.tail()
    assert (tmp_path / "main-returned").exists()
    assert (checkpoint / "metadata").read_text() == metadata
    assert not (checkpoint / "_drain").exists()
    last_batch = newest(checkpoint, "commits")
    assert newest(checkpoint, "offsets") == last_batch == drain["queries"][0]["lastBatchId"]
    assert ids_in(tmp_path / "out") == emitted

    feed.add(2)
    second = start("windows.py", tmp_path, store=drains, confs=ROCKSDB)
    eventually(settled_at(checkpoint, 5), "five files", alive=second)
    assert min(logged(checkpoint, "commits")) == 0
    assert newest(checkpoint, "commits") > last_batch
    (tmp_path / "poison").touch()
    drain_id = drains.write(checkpoint__policy="Keep")
    stalled = drains.reaches(drain_id, "Stalled", driver=second)
    assert stalled["reason"] == "FlushFailed"
    assert "this window is poisonous" in stalled["message"]
    assert second.running
    (tmp_path / "poison").unlink()
    drain = eventually(
        lambda: (drain := drains.show(drain_id))["state"] == "Drained" and drain, "the flush to be tried again", alive=second
    )
    assert drain["queries"][0]["checkpointPolicy"] == "Keep"
    assert drain["queries"][0]["operators"][0]["rowsBefore"] > 0
    assert drain["queries"][0]["operators"][0]["rowsAfter"] == 0
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
    drains.clean_up()
    assert second.wait() == 0, second.tail()

    feed.add()
    plain = start("windows.py", tmp_path, store=None, confs=ROCKSDB)
    assert plain.wait() != 0
    word = f"FENCED_BY_SPARK_DRAIN_{drain['uuid'].replace('-', '_')}_WITH_CHECKPOINT_POLICY_KEEP_START_WITH_ANOTHER_CHECKPOINT_LOCATION"
    assert word in plain.log, "one under the agent would fail as well"
    assert ids_in(tmp_path / "out") == exactly(range(250))


@pytest.mark.soak
def test_sleeping_query_and_an_application_that_leaves(tmp_path: Path, start: Start) -> None:
    """The store is broken at first: the pipeline runs all the same; then a drain wakes a query that sleeps for ten minutes."""
    checkpoint, feed, drains = tmp_path / "checkpoint", Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add()
    (tmp_path / "store/requests/.lock").mkdir(parents=True)  # not even root can open it as a file
    driver = start("sleeper.py", tmp_path, store=drains)
    eventually(settled_at(checkpoint, 1), "the first batch, although the store cannot be read", alive=driver)
    assert "the metadata store does not answer" in driver.log
    shutil.rmtree(tmp_path / "store")

    feed.add()
    written = time.monotonic()
    drain = drains.reaches(drains.write(), "Drained", driver=driver)
    assert time.monotonic() - written < 300
    assert drain["queries"][0]["lastBatchId"] == 0
    assert ids_in(tmp_path / "out") == exactly(range(50))

    assert not (tmp_path / "leaving").exists(), "isActive must stay true until the driver may go"
    (tmp_path / "leave").touch()
    eventually((tmp_path / "leaving").exists, "main to call stop", alive=driver)
    assert (tmp_path / "leaving").read_text() == "True"
    time.sleep(2)
    assert driver.running
    assert not (tmp_path / "stopped").exists()
    drains.clean_up()
    assert driver.wait() == 7, driver.tail()
    assert (tmp_path / "stopped").exists()


@pytest.mark.parametrize("script", ["attached.py", pytest.param("spawned.py", marks=pytest.mark.soak)])
def test_attached_by_hand_and_notified_before_the_start(tmp_path: Path, start: Start, script: str) -> None:
    """The notification is there before the driver, and the query never runs a batch."""
    drains = Drains(tmp_path / "store")
    Feed(tmp_path / "input")
    drain_id = drains.write()
    driver = start(script, tmp_path, drains.location, store=drains if script == "spawned.py" else None)
    drain = drains.reaches(drain_id, "Drained", driver=driver)
    assert drain["queries"][0]["lastBatchId"] is None
    assert drain["queries"][0]["message"] == "no batch was ever run: there is nothing to drain"
    assert driver.running
    assert not (tmp_path / "main-returned").exists()
    assert not (tmp_path / "checkpoint/_drain").exists()
    drains.clean_up()
    assert driver.wait() == 0, driver.tail()


@pytest.mark.parametrize("where", ["late", pytest.param("elsewhere", marks=pytest.mark.soak)])
def test_attached_too_late(tmp_path: Path, start: Start, where: str) -> None:
    """A query that the agent did not see start cannot be drained, and nothing else is drained without it."""
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add()
    driver = start("attached.py", tmp_path, drains.location, where, store=None)
    drain = drains.reaches(drains.write(), "Rejected", driver=driver)
    assert drain["reason"] == "UnsupportedQuery"
    assert "the agent has not seen the start of queries unseen" in drain["message"]
    eventually(lambda: ids_in(tmp_path / "out") == exactly(feed.ids), "the queries to run on", alive=driver)


def test_bounded_query_runs_to_its_end_and_a_late_withdrawal_is_refused(tmp_path: Path, start: Start) -> None:
    feed, drains = Feed(tmp_path / "input"), Drains(tmp_path / "store")
    feed.add(5)
    driver = start("available.py", tmp_path, store=drains)
    eventually(lambda: newest(tmp_path / "checkpoint", "commits") >= 0, "the first batch", alive=driver)
    drain_id = drains.write()
    drains.reaches(drain_id, "Flushing", driver=driver)
    eventually((tmp_path / "blocked").exists, "the flush batch to be under way", alive=driver)
    drains.withdraw(drain_id)
    eventually(lambda: drains.show(drain_id)["withdrawal"], "the answer to the withdrawal", alive=driver)
    assert drains.show(drain_id)["withdrawal"] == "TooLate"
    (tmp_path / "block").unlink()
    drain = drains.reaches(drain_id, "Drained", driver=driver)
    assert drain["withdrawal"] == "TooLate"
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
    rows = rows_in(tmp_path / "out")
    assert {row["pane"] for row in rows} == {True, False}
    assert [row["udf_pane"] for row in rows] == [row["pane"] for row in rows]
    assert not (tmp_path / "main-returned").exists()
    drains.clean_up()
    assert driver.wait() == 0, driver.tail()
