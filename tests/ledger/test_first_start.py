"""kill -9 of a new version while its agent makes the empty state that its first batch looks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_drain_store.cli import main as drain_command

from tests.ledger.harness import EXACT, Crash, Ledger, Restarter, copy

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

POINTS = [
    pytest.param("confs-renewed", marks=pytest.mark.soak),
    pytest.param("late-state-cleared", marks=pytest.mark.soak),
    pytest.param("empty-store-made", marks=pytest.mark.soak),
    "empty-state-begun",
    pytest.param("empty-state-made", marks=pytest.mark.soak),
]


@pytest.mark.parametrize("point", POINTS)
def test_killed_before_its_first_batch(point: str, source: Path, tmp_path: Path, restarter: Restarter) -> None:
    base = Crash("Auto", "drained").happen(source, tmp_path / "drained")
    drain_command(["--metadata-store", f"file:{base}/store", "drain", "cleanup", "--all"])
    Crash("Auto", point, version="v2").happen(source, base)
    plain = copy(base, "plain")

    restarted = restarter.run("plain", "v2", source, plain, "consume")
    assert restarted["outcome"] == ("ran" if point == "empty-state-made" else "failed"), restarted["detail"]
    for folder in (base, plain):
        resumed = restarter.run("agent", "v2", source, folder, "consume")
        assert resumed["outcome"] == "ran", resumed["detail"]
        assert Ledger(folder).verdict() == EXACT
