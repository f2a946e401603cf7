"""A flush that only a lost version could run, and a drain that somebody regrets: `recover` and `resume`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from spark_drain_store.cli import main as drain_command

from tests.ledger.harness import EVENTS, EXACT, Crash, Ledger, Restarter, copy

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.xdist_group("ways out")]


@pytest.fixture(scope="module")
def pending(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose flush is planned and not committed, and whose drain nobody asks for any more."""
    base = Crash("Auto", "before-sink-write").happen(source, tmp_path_factory.mktemp("pending") / "killed")
    drain_command(["--metadata-store", f"file:{base}/store", "drain", "cleanup", "--all"])
    return base


def test_another_version_is_refused_and_a_discarded_flush_lets_it_start(pending: Path, source: Path, restarter: Restarter) -> None:
    base = copy(pending, "discarded")
    refused = restarter.run("agent", "v2", source, base, "consume")
    assert refused["outcome"] == "failed"
    assert "RecoveryNeedsPreviousVersionError" in refused["detail"]
    assert "recover" in refused["detail"]
    assert "spark.sparkdrain.sameVersionAs=" in refused["detail"]
    before = Ledger(base).seen

    recovered = restarter.command("recover", f"{base}/checkpoints/ledger", "--discard-pending")
    assert recovered["outcome"] == "0", recovered["detail"]
    assert "drained without its flush" in recovered["detail"]
    again = restarter.command("recover", f"{base}/checkpoints/ledger", "--discard-pending")
    assert (again["outcome"], "no drain is under way" in again["detail"]) == ("1", True)

    kept = copy(base, "kept")
    resumed = restarter.run("agent", "v2", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    ledger = Ledger(base)
    lost = {number for number in range(EVENTS) if not ledger.seen[number]}
    assert lost, "there were no open windows"
    assert max(ledger.seen.values()) == 1
    # What is lost is what was open: events that v1 had read and not yet emitted, all of them before the first that v2 read.
    assert max(lost) < min(number for number in range(EVENTS) if ledger.seen[number] and number not in before)

    restored = restarter.command("resume", f"{kept}/checkpoints/ledger", "--from", "archive", "--accept-batch-id-reuse")
    assert restored["outcome"] == "0", restored["detail"]
    went_on = restarter.run("agent", "v1", source, kept, "consume")
    assert went_on["outcome"] == "ran", went_on["detail"]
    assert Ledger(kept).verdict() == EXACT


def test_a_drain_is_taken_back(source: Path, tmp_path: Path, restarter: Restarter) -> None:
    base = Crash("Auto", "drained").happen(source, tmp_path / "drained")
    drain_command(["--metadata-store", f"file:{base}/store", "drain", "cleanup", "--all"])
    assert Ledger(base).drain_panes() > 0
    with_v2 = copy(base, "v2")

    unsaid = restarter.command("resume", f"{base}/checkpoints/ledger", "--from", "archive")
    assert (unsaid["outcome"], "may remember batch ids" in unsaid["detail"]) == ("1", True)
    restored = restarter.command("resume", f"{base}/checkpoints/ledger", "--from", "archive", "--accept-batch-id-reuse")
    assert restored["outcome"] == "0", restored["detail"]
    went_on = restarter.run("agent", "v1", source, base, "consume")
    assert went_on["outcome"] == "ran", went_on["detail"]
    assert Ledger(base).verdict() == EXACT

    resumed = restarter.run("agent", "v2", source, with_v2, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    refused = restarter.command("resume", f"{with_v2}/nowhere", "--from", "archive")
    assert (refused["outcome"], "is not a checkpoint directory: no metadata file" in refused["detail"]) == ("1", True)


@pytest.mark.parametrize(
    ("point", "version"),
    [
        ("committing", "v2"),
        pytest.param("prepared", "v2", marks=pytest.mark.soak),
        pytest.param("before-sink-write", "v1 update", marks=pytest.mark.soak),
    ],
)
def test_only_the_version_that_was_asked_finishes_the_drain(
    point: str, version: str, source: Path, tmp_path: Path, restarter: Restarter
) -> None:
    """Whatever a killed driver has come to, no other version flushes its state, or says that there was nothing to flush."""
    base = Crash("Auto", point).happen(source, tmp_path / "killed")
    store = base / "store"
    asked = copy(store, "asked")
    refused = restarter.run("agent", version, source, base, "finish")
    assert (refused["outcome"], refused["drain"]["reason"]) == ("failed", "RecoveryNeedsPreviousVersion")
    shutil.rmtree(store)
    asked.rename(store)
    finished = restarter.run("agent", "v1", source, base, "finish")
    assert finished["outcome"] == "ran", finished["detail"]
    assert Ledger(base).drain_panes() > 0
    resumed = restarter.run("agent", "v2", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    assert Ledger(base).verdict() == EXACT
