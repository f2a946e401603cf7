"""A second driver on a checkpoint that is being drained: it waits, and only one of them flushes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from spark_drain_store import DrainState, open_channel, reasons
from spark_drain_store.drains import Drains

from tests.agent.harness import eventually
from tests.ledger.harness import EXACT, Crash, Ledger, Restarter

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_only_one_flushes(source: Path, tmp_path: Path, restarter: Restarter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_LEASE_SECONDS", "5")  # a busy machine may need seconds between two heartbeats
    base = tmp_path / "shared"
    base.mkdir()
    (base / "hesitate").touch()
    with ThreadPoolExecutor(2) as beside:
        first = beside.submit(Crash("Auto", "drained").happen, source, base)
        eventually((base / "writers").exists, "the first driver to be in its flush batch")
        second = beside.submit(restarter.run, "agent", "v1", source, base, "finish")

        def waits() -> bool:
            reports = Drains.read(open_channel(f"file:{base}/store")).reports.values()
            return any((report.state, report.reason) == (DrainState.STALLED, reasons.CHECKPOINT_LEASED) for report in reports)

        try:
            eventually(waits, "the second driver to say that it waits", seconds=120)
        finally:
            (base / "hesitate").unlink()  # or both would wait for ever
        first.result()
        finished = second.result()
    assert finished["outcome"] == "ran", finished["detail"]
    assert len(set((base / "writers").read_text().split())) == 1
    resumed = restarter.run("agent", "v2", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    assert Ledger(base).verdict() == EXACT
