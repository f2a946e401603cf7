"""Executors that are killed while they run a flush batch, and before they could report: real processes, as in a cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pyspark
import pytest
from spark_drain_agent.drain.executor_reports import collect_executor_reports
from spark_drain_store import open_channel
from spark_drain_store.drains import Drains as Messages

from tests.agent.harness import PER_FILE, Drains, Driver, Feed, eventually, exactly, ids_in, newest

TASKS = 4


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark's workers, which write below their home, have one that goes away with the test."""
    home = tmp_path / "home"
    home.mkdir()
    for part in ("bin", "jars"):
        (home / part).symlink_to(Path(pyspark.__path__[0]) / part)
    monkeypatch.setenv("SPARK_HOME", str(home))


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("spark_home")
def test_killed_in_the_flush_and_before_the_report(tmp_path: Path) -> None:
    """A lost task is run again by Spark once, as the application's conf says; when it is lost again, the flush fails and is tried again."""
    base = tmp_path / "base"
    base.mkdir()
    feed, drains, checkpoints = Feed(base / "input"), Drains(base / "store"), base / "checkpoints"
    feed.add(3)
    for obstacle in ("hold", "hold-report"):
        (base / obstacle).touch()
    driver = Driver("lost.py", base, store=drains, confs={"spark.master": "local-cluster[2,2,1024]", "spark.task.maxFailures": "2"})
    try:
        eventually(lambda: newest(checkpoints / "awake", "commits") >= 3, "three files and a batch without any", alive=driver)
        eventually(lambda: newest(checkpoints / "asleep", "commits") == 0, "the only batch", alive=driver)
        drain_id = drains.write()
        eventually(lambda: sum(map(len, held(base).values())) == TASKS, "both flush batches to be on the executors", alive=driver)
        first = held(base)
        lost, other = first
        os.kill(lost, signal.SIGKILL)

        def again() -> int | None:
            return next((executor for executor, tasks in held(base).items() if executor not in first and tasks >= first[lost]), None)

        replacement = eventually(again, "Spark to run the lost tasks on another executor", alive=driver)
        assert not any(word in answers(driver, drain_id) for word in ("Error", "Job aborted"))
        os.kill(replacement, signal.SIGKILL)
        eventually(lambda: "Job aborted due to stage failure" in answers(driver, drain_id), "the batch to fail", alive=driver)
        (base / "hold").unlink()
        eventually((base / "reporting").exists, "the flush", alive=driver)
        assert ids_in(base / "out/awake") == exactly(feed.ids)
        assert ids_in(base / "out/asleep") == exactly(range(PER_FILE))
        assert answers(driver, drain_id).count("is flushed on a work copy, since its next trigger is") == 1

        os.kill(other, signal.SIGKILL)
        (base / "hold-report").unlink()
        drains.reaches(drain_id, "Drained", driver=driver)
        report = Messages.read(open_channel(drains.location)).reports[drain_id]
        assert report.executors_expected == 2
        assert report.executors_drained, "those that took their place have answered"
        assert {(item.id, item.state) for item in report.executor_exceptions} == {("0", "Gone"), ("1", "Gone")}
        drains.clean_up()
        assert driver.wait() == 0, driver.tail()
    finally:
        driver.close()


def held(base: Path) -> dict[int, set[str]]:
    """Return the tasks that waited, by the process of their executor."""
    found: dict[int, set[str]] = {}
    for path in (base / "held").iterdir():
        process, _, task = path.name.partition(".")
        found.setdefault(int(process), set()).add(task)
    return found


def answers(driver: Driver, drain_id: str) -> str:
    """Return what the agent has logged of a drain."""
    return "".join(line for line in driver.log.splitlines() if f"spark_drain: drain {drain_id}: query" in line)


class NoExecutors:
    """Stands where Spark knows no executor."""

    def executors(self) -> list[tuple[str, str]]:
        return []

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"no job may be started where there is no executor: {name}")


@pytest.mark.parametrize("expected", [{}, {"1": "host"}], ids=["none-ever", "the-last-one-left"])
def test_zero_executors(expected: dict[str, str]) -> None:
    internals: Any = NoExecutors()
    summary = collect_executor_reports(internals, expected)
    assert (summary.expected, summary.drained) == (len(expected), "")
    assert [(item.id, item.state) for item in summary.exceptions] == [(executor, "Gone") for executor in expected]
