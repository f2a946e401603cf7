"""Two drivers that start at the same time on a checkpoint with a pending drain: one of them ends it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from spark_drain_store import DrainState, open_channel
from spark_drain_store.cli import main as drain_command
from spark_drain_store.drains import Drains

from tests.ledger.harness import EXACT, Ledger, Restarter, write_events
from tests.s3.drivers import copy_in_bucket, in_bucket
from tests.support.s3_server import S3Server
from tests.support.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(900)]
TRIALS = 5


@pytest.mark.parametrize("lease", ["none", "void"])
def test_one_flushes(lease: str, s3: S3Server, restarter: Restarter, another: Restarter, tmp_path: Path) -> None:
    """Where the driver before has left no lease, or one that both find void."""
    source, killed = tmp_path / "input", tmp_path / "killed"
    write_events(source)
    base = in_bucket(s3, tmp_path / "drained")
    snapshot = {"batches": 3, "flush": "WorkCopy", "point": "flush-logged", "copy": str(killed)}
    drained = restarter.run("agent", "v1", source, base, "snapshot", **snapshot)
    assert drained["outcome"] == "ran", drained["detail"]
    left = killed / "checkpoints/ledger/_drain/lease"
    if lease == "none":
        left.unlink()
    else:
        left.write_text(json.dumps(json.loads(left.read_text()) | {"run": "killed"}))
    for trial in range(TRIALS):
        _race((restarter, another), source, copy_in_bucket(s3, killed, str(trial)))


def _race(drivers: tuple[Restarter, Restarter], source: Path, base: Path) -> None:
    finished: set[str] = set()

    def both_have_seen_its_end() -> bool:
        finished.update(_finished_by(base))
        return len(finished) == len(drivers)

    with ThreadPoolExecutor(len(drivers)) as beside:
        both = [beside.submit(each.run, "agent", "v1", source, base, "await", lease="5") for each in drivers]
        try:
            eventually(both_have_seen_its_end, "both drivers to say that the drain is finished", seconds=180)
        finally:
            drain_command(["--metadata-store", f"file:{base}/store", "drain", "cleanup", "--all"])
    for each in both:
        assert each.result()["outcome"] == "ran", each.result()["detail"]
    assert len((base / "writers").read_text().split()) == 1
    resumed = drivers[0].run("agent", "v2", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    assert Ledger(base).verdict() == EXACT


def _finished_by(base: Path) -> set[str]:
    """Return the run that says now that the drain is finished, if one does."""
    reports = Drains.read(open_channel(f"file:{base}/store")).reports.values()
    return {report.runs[-1] for report in reports if report.state is DrainState.DRAINED}
