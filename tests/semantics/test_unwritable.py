"""A checkpoint that cannot be written: the reason is shown, nothing is lost, and the drain goes on when it can."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.checkpoint import lease
from spark_drain_agent.drain import after_commit
from spark_drain_agent.durations import LEASE
from spark_drain_store import DrainState, reasons

from tests.devcluster.machine_state import ANOTHER_TESTS_DISK
from tests.semantics.warm import Application, Batches, Event, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

EVENTS = [Event(number, "ab"[number % 2], number) for number in range(40)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 4 MiB."""
    if os.geteuid() != 0:
        pytest.fail("making a small filesystem needs root: run the tests with -k 'not can_write', or as root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", ANOTHER_TESTS_DISK, disk], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def _fill(checkpoint: Path) -> Callable[[], None]:
    blob = checkpoint.parent.parent / "blob"
    with blob.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            return blob.unlink


def _forbid(checkpoint: Path) -> Callable[[], None]:
    """Make the drain's folder impossible; permissions are another test's, in tests/agent."""
    (checkpoint / "_drain").touch()
    return (checkpoint / "_drain").unlink


@pytest.mark.parametrize("obstruct", [_fill, _forbid])
def test_the_drain_waits_until_it_can_write(
    obstruct: Callable[[Path], Callable[[], None]], spark: SparkSession, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_commit, "_RETRY_SECONDS", (0.2,))
    monkeypatch.setattr(lease, "LEASE", replace(LEASE, default=1))  # a full disk leaves one in part, which each try waits for
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(EVENTS)
    app = Application(spark, small_disk / "checkpoints")
    try:
        counts = events.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids")
        query = app.start(counts, sink)
        read_all(query)
        checkpoint = small_disk / "checkpoints/q"
        clear = obstruct(checkpoint)
        logs = {path: path.read_bytes() for log in ("offsets", "commits") for path in (checkpoint / log).glob("[0-9]*")}
        with app.user_waits():
            drain_id = app.ask()
            stalled = app.answer(drain_id, DrainState.STALLED)
            assert stalled.reason == reasons.CHECKPOINT_UNWRITABLE
            assert str(checkpoint / "_drain") in stalled.message or "No space left" in stalled.message
            assert "\n" not in stalled.message, "a stack trace is nothing for kubectl describe"
            assert {path: path.read_bytes() for path in logs} == logs
            assert "FENCED" not in (checkpoint / "metadata").read_text()
            clear()
            app.answer(drain_id, DrainState.DRAINED, patient=True)
        app.finish(drain_id)
    finally:
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)
