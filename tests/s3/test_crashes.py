"""kill -9 of a driver whose checkpoint is in S3, at some requests of its drain; then it restarts under the agent, and without it.

The proxy kills: before or after the store has carried a request out. As on a disk, the drain is finished and an incompatible version reads
on with each event counted exactly once; plain Spark refuses the checkpoint or is exact. `test_killed_anywhere` is about all requests.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.ledger.harness import EXACT, FILES, Crash, Ledger, Restarter, write_events
from tests.s3.drivers import copy_in_bucket, in_bucket, spark_on
from tests.support.s3_proxy import CHANGES, Fault
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

_BEGINS = "_drain/journal$"


@dataclass(frozen=True)
class Point:
    """Where a driver is killed: at the so-manieth change of the bucket after the journal's first entry."""

    flush: str
    number: int
    carried_out: bool

    def __str__(self) -> str:
        return f"{self.flush}-{self.number}-{'after' if self.carried_out else 'before'}"


_IN_EVERY_RUN = Point("WorkCopy", 12, True)
POINTS = [Point("Auto", number, after) for number in (1, 4, 8, 12, 16) for after in (False, True)]
POINTS += [Point("WorkCopy", number, after) for number in (4, 8, 12, 16, 20) for after in (False, True)]


@pytest.mark.parametrize("point", [pytest.param(each, marks=[] if each == _IN_EVERY_RUN else pytest.mark.soak) for each in POINTS], ids=str)
def test_killed_at_a_request(point: Point, s3: S3Server, restarter: Restarter, tmp_path: Path) -> None:
    source = tmp_path / "input"
    write_events(source, range(FILES - 1))
    base = in_bucket(s3, tmp_path / "killed")
    crash = Crash(point.flush, "drained", spark=spark_on(s3))

    def arm(group: int) -> None:
        kill = partial(os.killpg, group, signal.SIGKILL)
        s3.proxy.fault = Fault(CHANGES, after=_BEGINS, nth=point.number, carried_out=point.carried_out, act=kill, times=1)

    crash.happen(source, base, arm)
    assert s3.proxy.fault is not None
    assert s3.proxy.fault.happened, "the drain has no such request"
    s3.proxy.fault = None
    write_events(source, [FILES - 1])
    plain = copy_in_bucket(s3, base, "plain")
    _check_restart_with_the_agent(base, source, restarter)
    _check_plain_restart(plain, source, restarter)


def _check_restart_with_the_agent(base: Path, source: Path, restarter: Restarter) -> None:
    finished = restarter.run("agent", "v1", source, base, "finish")
    assert finished["outcome"] == "ran", finished["detail"]
    resumed = restarter.run("agent", "v2", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    ledger = Ledger(base)
    assert ledger.verdict() == EXACT
    assert ledger.drain_panes() > 0


def _check_plain_restart(base: Path, source: Path, restarter: Restarter) -> None:
    refused = (
        "FENCED_BY_SPARK_DRAIN" in (base / "checkpoints/ledger/metadata").read_text() or not (base / "checkpoints/ledger/state").exists()
    )
    restarted = restarter.run("plain", "v1", source, base, "consume")
    assert restarted["outcome"] == ("failed" if refused else "ran"), restarted["detail"]
    resumed = restarter.run("agent", "v1", source, base, "consume")
    assert resumed["outcome"] == "ran", resumed["detail"]
    assert Ledger(base).verdict() == EXACT
