"""kill -9 of a real driver at every point of a drain, and at random moments; then the application restarts under the agent, and without it.

With the agent the drain is finished and an incompatible version reads on: each event is counted exactly once. Plain Spark, which
knows nothing of the drain, must fail loudly or be exact, never lose silently.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.ledger.harness import EXACT, Crash, Ledger, Restarter, copy

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

BEFORE_FENCE = ["settled", "committing", "prepared"]
FLUSHED_IN_THE_RUNNING_QUERY = ["watermark-raised", "seed-staged", "before-sink-write", "after-sink-write", "running-flush-committed"]
FLUSHED_ON_THE_WORK_COPY = ["logs-copied", "state-moved", "flush-logged", "before-sink-write", "after-sink-write", "flush-committed"]
SEEDING = ["commits-cleared", "commits-seeded", "offsets-cleared", "offsets-seeded", "state-cleared", "seeded"]
AFTER_FENCE = ["fence-lifted", "reporting", "drained"]

RUNNING = [Crash("Auto", point) for point in ["fenced", *FLUSHED_IN_THE_RUNNING_QUERY, "logs-copied", "state-moved", *SEEDING]]
WORK_COPY = [Crash("WorkCopy", point) for point in ["fenced", *FLUSHED_ON_THE_WORK_COPY]]
# After the flush both ways have the same files; what differs before it is how the query is ended.
UNFENCED = [Crash("Auto", point) for point in [*BEFORE_FENCE, *AFTER_FENCE]] + [Crash("WorkCopy", "prepared")]
MOMENTS = [Crash(("Auto", "WorkCopy")[number % 2], f"{random.Random(number).uniform(0, 1.6):.2f}") for number in range(20)]


@pytest.fixture(scope="module")
def crashed(request: pytest.FixtureRequest, source: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Crash], Path]]:
    """Return the folder that a crash left; the next driver crashes while the last one's remains are restarted."""
    chosen: list[Any] = [item for item in request.session.items if item.path == request.path]
    with ThreadPoolExecutor(1) as beside:
        crashes: dict[Crash, Future[Path]] = {
            crash: beside.submit(crash.happen, source, tmp_path_factory.mktemp(str(crash)) / "killed")
            for crash in (item.callspec.params["crash"] for item in chosen)
        }
        yield lambda crash: crashes[crash].result()
        beside.shutdown(cancel_futures=True)


@pytest.mark.parametrize("crash", [*RUNNING, *WORK_COPY, *UNFENCED], ids=str)
def test_killed_at(crash: Crash, crashed: Callable[[Crash], Path], source: Path, restarter: Restarter) -> None:
    base = crashed(crash)
    plain = copy(base, "plain")
    _check_restart_with_the_agent(base, source, restarter)
    assert _plain_restart_fails_loudly_or_is_exact(plain, source, restarter) == ("exact" if crash in UNFENCED else "failed")


@pytest.mark.parametrize("crash", MOMENTS, ids=str)
def test_killed_at_a_random_moment(crash: Crash, crashed: Callable[[Crash], Path], source: Path, restarter: Restarter) -> None:
    base = crashed(crash)
    plain = copy(base, "plain")
    _check_restart_with_the_agent(base, source, restarter)
    _plain_restart_fails_loudly_or_is_exact(plain, source, restarter)


def _check_restart_with_the_agent(base: Path, source: Path, restarter: Restarter) -> None:
    finished = restarter.run("agent", "v1", source, base, "finish")
    assert finished["outcome"] == "ran", finished["detail"]
    resumed = restarter.run("agent", "v2", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    ledger = Ledger(base)
    assert ledger.verdict() == EXACT
    assert ledger.drain_panes() > 0


def _plain_restart_fails_loudly_or_is_exact(base: Path, source: Path, restarter: Restarter) -> str:
    restarted = restarter.run("plain", "v1", source, base, "consume")
    if restarted["outcome"] == "failed":
        assert "FENCED_BY_SPARK_DRAIN" in restarted["detail"]
        return "failed"
    assert restarted["outcome"] == "ran", restarted["detail"]
    resumed = restarter.run("agent", "v1", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    assert Ledger(base).verdict() == EXACT
    return "exact"
