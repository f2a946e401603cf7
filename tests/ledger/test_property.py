"""Streams, windows, drain moments and crash points that nobody thought of: each event is counted exactly once."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ledger.harness import Ledger, Restarter

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

CORPUS = Path(__file__).with_name("corpus.json")
EXAMPLES = int(os.environ.get("LEDGER_EXAMPLES", "2"))
MANY = 40
POINTS = [
    *("prepared", "fenced", "running-flush-committed", "logs-copied", "state-moved", "flush-logged", "flush-committed"),
    *("logs-cleared", "logs-seeded", "state-cleared", "seeded", "fence-lifted", "reporting"),
]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One story.

    Parameters
    ----------
    files
        How many seconds each event of each file is late, at most ``delay``; none is too late.
    step
        Seconds of event time between two events.
    delay
        Of the watermark, in seconds.
    widths
        Of the windows of both versions, or gaps of sessions, in seconds.
    sessions
        Whether windows are sessions.
    batches
        After how many batches the drain is requested.
    point
        Where the driver is killed.
    flush
        The conf spark.sparkdrain.flush.
    """

    files: list[list[int]]
    step: int
    delay: int
    widths: tuple[int, int]
    sessions: bool
    batches: int
    point: str
    flush: str

    def write(self, source: Path, base: Path) -> int:
        """Write the input and the shape of the pipeline; returns the number of events."""
        source.mkdir()
        base.mkdir()
        number = 0
        for index, lateness in enumerate(self.files):
            lines = []
            for late in lateness:
                at = 1_767_225_600 + 3600 + number * self.step - min(late, self.delay)
                lines.append(json.dumps({"id": number, "key": "ab" * (number % 4), "at": at}))
                number += 1
            (source / f"{index:03}.json").write_text("\n".join(lines))
            os.utime(source / f"{index:03}.json", (1_700_000_000 + index, 1_700_000_000 + index))
        shape = {"delay": self.delay, "width": {"v1": self.widths[0], "v2": self.widths[1]}, "sessions": self.sessions}
        (base / "shape.json").write_text(json.dumps(shape))
        return number


def _cases(delay: int) -> st.SearchStrategy[Case]:
    lateness = st.one_of(st.just(0), st.integers(0, delay))
    return st.builds(
        Case,
        files=st.lists(st.lists(lateness, min_size=1, max_size=30), min_size=1, max_size=6),
        step=st.integers(0, 40),
        delay=st.just(delay),
        widths=st.tuples(st.integers(1, 400), st.integers(1, 400)),
        sessions=st.booleans(),
        batches=st.integers(0, 8),
        point=st.sampled_from(POINTS),
        flush=st.sampled_from(["Auto", "WorkCopy"]),
    )


def check(case: Case, restarter: Restarter) -> None:
    with tempfile.TemporaryDirectory(prefix="ledger-property-", ignore_cleanup_errors=True) as folder:
        source, base, ended, killed = (Path(folder) / name for name in ("input", "base", "ended", "killed"))
        events = case.write(source, base)
        more = {"flush": case.flush, "batches": case.batches, "point": case.point, "copy": str(killed)}
        _ran(restarter.run("agent", "v1", source, base, "snapshot", **more))
        base.rename(ended)
        killed.rename(base)  # a checkpoint is known by where it is
        _ran(restarter.run("agent", "v1", source, base, "finish", flush=case.flush))
        for end in (base, ended):
            _ran(restarter.run("agent", "v2", source, end, "consume", flush=case.flush))
            assert Ledger(end, events).verdict() == f"records={events} lost=0 doubled=0", end.name


def _ran(answer: dict[str, Any]) -> None:
    assert answer["outcome"] == "ran", answer["detail"]


@pytest.mark.parametrize("examples", [EXAMPLES, pytest.param(MANY, marks=pytest.mark.soak)])
def test_generated(examples: int, restarter: Restarter) -> None:
    @settings(max_examples=examples)
    @given(case=st.integers(0, 120).flatmap(_cases))
    def generated(case: Case) -> None:
        check(case, restarter)

    generated()


@pytest.mark.parametrize("stored", json.loads(CORPUS.read_text()), ids=lambda stored: stored["why"])
def test_corpus(stored: dict[str, Any], restarter: Restarter) -> None:
    values = {field.name: stored[field.name] for field in dataclasses.fields(Case)}
    check(Case(**values), restarter)
