"""Input against output, event by event, without Spark and without any deduplication."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from spark_drain_agent.demo.events import read_events

__all__ = ["Ledger", "Window", "balance", "read_windows"]


@dataclass(frozen=True)
class Window:
    """One row of output.

    Parameters
    ----------
    batch_id
        The batch that emitted it.
    start, end
        UTC.
    kind
        Grouping key of v2, "" for v1.
    count
        As Spark counted.
    numbers
        The events in it.
    early
        What the pipeline itself says about having been emitted by a drain; None for v1, which does not ask.
    """

    batch_id: int
    start: datetime
    end: datetime
    kind: str
    count: int
    numbers: tuple[int, ...]
    early: bool | None


def read_windows(output: Path) -> list[Window]:
    """Return what one version of the pipeline has written so far, in the order of its batches."""
    files = sorted(output.glob("batch-*.jsonl"), key=_batch_id)
    return [
        Window(
            batch_id=_batch_id(file),
            start=datetime.fromisoformat(row["start"]),
            end=datetime.fromisoformat(row["end"]),
            kind=str(row.get("kind", "")),
            count=int(row["count"]),
            numbers=tuple(row["numbers"]),
            early=row.get("early"),
        )
        for file in files
        for row in map(json.loads, file.read_text().splitlines())
    ]


def _batch_id(file: Path) -> int:
    return int(file.stem.removeprefix("batch-"))


@dataclass(frozen=True)
class Ledger:
    """The balance.

    Parameters
    ----------
    records
        Events in the input.
    lost
        Events of the input that are nowhere in the output.
    doubled
        How often an event was counted again, or that is not in the input at all.
    """

    records: int
    lost: int
    doubled: int

    @property
    def exact(self) -> bool:
        """Whether every event was counted exactly once."""
        return self.records > 0 and self.lost == 0 and self.doubled == 0

    def __str__(self) -> str:
        return f"ledger: records={self.records} lost={self.lost} doubled={self.doubled}"


def balance(events: Path, windows: list[Window]) -> Ledger:
    """Compare all event files with all windows."""
    expected = Counter(event.number for event in read_events(events.glob("*.json")))
    found: Counter[int] = Counter()
    for window in windows:
        found.update(window.numbers)
        if window.count != len(window.numbers):
            raise ValueError(f"the window from {window.start} counts {window.count} events and holds {len(window.numbers)}")
    return Ledger(records=expected.total(), lost=(expected - found).total(), doubled=(found - expected).total())
