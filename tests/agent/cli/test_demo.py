"""The demo is a real drain: it runs to an exact ledger and leaves nothing behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from spark_drain_agent.demo.events import EVENTS_PER_FILE, EventWriter, read_events
from spark_drain_agent.demo.ledger import Window, balance
from spark_drain_agent.demo.progress import look

from tools import spark_java


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, **spark_java.environment(), "TMPDIR": str(folder)}


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_demo_tells_its_story_and_is_exact(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spark_drain_agent", "demo"],
        env=_environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "ledger: records=2000 lost=0 doubled=0"
    steps = re.findall(r"^ *[0-9.]+s \[([0-9]+)/([0-9]+)\]", done.stdout, re.MULTILINE)
    assert [int(step) for step, _ in steps] == list(range(1, int(steps[0][1]) + 1))
    for state in ("Acknowledged", "Stopping", "Flushing", "Drained"):
        assert len(re.findall(rf"s +{state} ", done.stdout)) == 2, state
    assert done.stdout.count("drain pane") >= 4
    assert not list(tmp_path.glob("spark-drain-demo-*"))


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_demo_that_is_ended_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "spark_drain_agent", "demo"],
        env=_environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout is not None
    with demo.stdout:
        while "$ python -m spark_drain_agent" not in demo.stdout.readline():
            pass
    (log,) = tmp_path.glob("spark-drain-demo-*/v1.log")
    demo.terminate()
    assert demo.wait(60) == 143
    assert not list(tmp_path.glob("spark-drain-demo-*"))
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(log.parent).encode() in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def window(*numbers: int, count: int | None = None) -> Window:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    size = len(numbers) if count is None else count
    return Window(batch_id=0, start=start, end=start + timedelta(minutes=5), kind="", count=size, numbers=numbers, early=None)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    EventWriter(tmp_path, files=1, pause=0).run()
    return tmp_path


ALL = tuple(range(EVENTS_PER_FILE))


@pytest.mark.parametrize(
    ("windows", "text"),
    [
        ([window(*ALL[:20]), window(*ALL[20:])], "records=50 lost=0 doubled=0"),
        ([window(*ALL[1:])], "records=50 lost=1 doubled=0"),
        ([window(*ALL), window(3, 3)], "records=50 lost=0 doubled=2"),
        ([window(*ALL[1:]), window(7)], "records=50 lost=1 doubled=1"),
        ([window(*ALL, 999)], "records=50 lost=0 doubled=1"),
        ([], "records=50 lost=50 doubled=0"),
    ],
)
def test_the_ledger_sees_every_difference(events: Path, windows: list[Window], text: str) -> None:
    ledger = balance(events, windows)
    assert str(ledger) == f"ledger: {text}"
    assert ledger.exact == (text == "records=50 lost=0 doubled=0")


def test_the_ledger_does_not_trust_a_count(events: Path) -> None:
    with pytest.raises(ValueError, match="counts 49 events and holds 50"):
        balance(events, [window(*ALL, count=49)])


def test_no_input_is_not_exact(tmp_path: Path) -> None:
    assert not balance(tmp_path, []).exact


def test_events_are_numbered_without_gaps(events: Path) -> None:
    assert [event.number for event in read_events(events.glob("*.json"))] == list(ALL)


def test_progress_counts_what_the_source_log_names(events: Path, tmp_path: Path) -> None:
    log = tmp_path / "checkpoint/sources/0/0"
    log.parent.mkdir(parents=True)
    log.write_text(f'v1\n{{"path":"file://{events}/00000.json","timestamp":1,"batchId":0}}')
    five_minutes = timedelta(minutes=5)
    assert look(tmp_path / "checkpoint", [], five_minutes).read == EVENTS_PER_FILE
    assert look(tmp_path / "checkpoint", [], five_minutes).open == 2  # ten seconds apart, fifty events reach into a second window
    assert look(tmp_path / "checkpoint", [window(1)], five_minutes).open == 1
