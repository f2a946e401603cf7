"""kill -9 of a real driver at every point of a drain; then the same application restarts under the agent, and without it.

With the agent the drain is finished and an incompatible version reads on: each event is counted exactly once. Plain Spark, which
knows nothing of the drain, must fail loudly or be exact, never lose silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.harness import EXACT, Ledger, Restarter, copy, crash, write_events

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

BEFORE_FENCE = ["settled", "committing", "prepared"]
FENCED = [
    "fenced",
    "logs-copied",
    "state-moved",
    "flush-logged",
    "before-sink-write",
    "after-sink-write",
    "flush-committed",
    "commits-cleared",
    "commits-seeded",
    "offsets-cleared",
    "offsets-seeded",
    "state-cleared",
    "seeded",
]
AFTER_FENCE = ["fence-lifted", "reporting", "drained"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledger") / "input"
    write_events(folder)
    return folder


@pytest.fixture(scope="module")
def restarter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarter]:
    restarter = Restarter(tmp_path_factory.mktemp("restarter") / "log")
    yield restarter
    restarter.close()


@pytest.mark.parametrize("point", [*BEFORE_FENCE, *FENCED, *AFTER_FENCE])
def test_killed_at(point: str, source: Path, tmp_path: Path, restarter: Restarter) -> None:
    base = tmp_path / "killed"
    crash(point, source, base)
    plain = copy(base, "plain")

    finished = restarter.run("agent", "v1", source, base, "finish")
    assert finished["outcome"] == "ran", finished["detail"]
    resumed = restarter.run("agent", "v2", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    ledger = Ledger(base)
    assert ledger.verdict() == EXACT
    assert ledger.drain_panes() > 0

    restarted = restarter.run("plain", "v1", source, plain, "consume")
    if point in FENCED:
        assert restarted["outcome"] == "failed"
        assert "FENCED_BY_SPARK_DRAIN" in restarted["detail"]
    else:
        assert restarted["outcome"] == "ran", restarted["detail"]
        resumed = restarter.run("agent", "v1", source, plain, "consume")
        assert resumed["outcome"] == "ran", resumed["detail"]
        assert Ledger(plain).verdict() == EXACT
