"""A drain with policy Reseed is how an application changes its Spark: drained on one release, read on with another, by another plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.harness import EXACT, Ledger, Restarter, Spark, write_events
from tools import sparks

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

LOCKED = "locked"
"""The release of requirements.lock."""

UPGRADES = [
    pytest.param(old, new, marks=() if (old, new) == (sparks.RELEASES[0], LOCKED) else pytest.mark.soak)
    for old in sparks.RELEASES[:2]
    for new in (*sparks.RELEASES[1:], LOCKED)
    if old != new
]


@pytest.mark.parametrize(("old", "new"), UPGRADES)
def test_drained_on_one_spark_and_read_on_with_another(old: str, new: str, tmp_path: Path) -> None:
    source, base, later = tmp_path / "input", tmp_path / "base", tmp_path / "later"
    base.mkdir()
    write_events(source)
    later.mkdir()
    second_half = sorted(source.iterdir())[4:]
    for file in second_half:
        file.rename(later / file.name)
    for version, release, log in (("v1", old, tmp_path / "old"), ("v2", new, tmp_path / "new")):
        restarter = Restarter(log, Spark(None if release == LOCKED else sparks.install(release)))
        try:
            ran = restarter.run("agent", version, source, base, "consume")
        finally:
            restarter.close()
        assert ran["outcome"] == "ran", ran["detail"]
        assert release in (LOCKED, ran["drain"]["sparkVersion"])
        for file in second_half if version == "v1" else ():
            (later / file.name).rename(file)
    assert Ledger(base).drain_panes() > 0
    assert Ledger(base).verdict() == EXACT
