"""The core of a drain on every supported release of Spark: flushed in both ways, reseeded, read on by an incompatible version, fenced."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_drain_agent.checkpoint.fence import fence_line

from tests.ledger.harness import EXACT, Ledger, Restarter, Spark, write_events
from tools import sparks

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.parametrize("release", [pytest.param(each, marks=[pytest.mark.soak] * (each == "4.1.4")) for each in sparks.RELEASES])
def test_drained_and_read_on(release: str, tmp_path: Path) -> None:
    source, base, later = tmp_path / "input", tmp_path / "base", tmp_path / "later"
    base.mkdir()
    write_events(source)
    second_half = sorted(source.iterdir())[4:]
    later.mkdir()
    for file in second_half:
        file.rename(later / file.name)
    restarter = Restarter(tmp_path / "log", Spark(sparks.install(release)))
    try:
        first = restarter.run("agent", "v1", source, base, "consume")
        assert first["outcome"] == "ran", first["detail"]
        assert "running-flush-committed" in first["points"]
        drain = first["drain"]
        assert drain["sparkVersion"] == release
        assert drain["queries"][0]["operators"] == [{"name": "Aggregate", "disposition": "flushed", "rowsBefore": 4, "rowsAfter": 0}]
        assert Ledger(base).drain_panes() == 4
        for file in second_half:
            (later / file.name).rename(file)
        second = restarter.run("agent", "v2", source, base, "consume", flush="WorkCopy")
        assert second["outcome"] == "ran", second["detail"]
        assert "flush-committed" in second["points"]
        assert Ledger(base).verdict() == EXACT

        (base / "checkpoints/ledger/metadata").write_text(fence_line("uuid"))
        (base / "checkpoints/ledger/.metadata.crc").unlink(missing_ok=True)
        plain = restarter.run("plain", "v2", source, base, "consume")
        assert plain["outcome"] == "failed"
        assert "FENCED_BY_SPARK_DRAIN" in plain["detail"]
    finally:
        restarter.close()
