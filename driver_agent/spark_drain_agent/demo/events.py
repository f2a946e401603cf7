"""Numbered events in files, written while the pipeline runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

__all__ = ["EVENTS_PER_FILE", "Event", "EventWriter", "read_events"]

EVENTS_PER_FILE = 50
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_STEP = timedelta(seconds=10)
_KINDS = ("red", "green", "blue")


@dataclass(frozen=True)
class Event:
    """One input record.

    Parameters
    ----------
    number
        From 0, without gaps.
    time
        Event time in UTC.
    """

    number: int
    time: datetime


class EventWriter(threading.Thread):
    """Writes a fixed number of events, one file at a time, in event-time order.

    Parameters
    ----------
    folder
        Where the files go; must exist.
    files
        How many files of `EVENTS_PER_FILE` events each.
    pause
        Seconds between two files.
    """

    def __init__(self, folder: Path, files: int, pause: float) -> None:
        super().__init__(name="demo-events", daemon=True)
        self._folder, self._files, self._pause = folder, files, pause
        self._stopped = threading.Event()
        self.written = 0
        self.total = files * EVENTS_PER_FILE

    def run(self) -> None:
        """Write until all files are there, or `stop` is called."""
        for index in range(self._files):
            numbers = range(index * EVENTS_PER_FILE, (index + 1) * EVENTS_PER_FILE)
            lines = [
                json.dumps({"number": number, "time": (_FIRST + number * _STEP).isoformat(), "kind": _KINDS[number % len(_KINDS)]})
                for number in numbers
            ]
            # Spark reads a file once, as soon as it sees its name: it must be complete by then.
            unfinished = self._folder / f".{index:05}.json"
            unfinished.write_text("\n".join(lines) + "\n")
            unfinished.replace(self._folder / f"{index:05}.json")
            self.written = numbers.stop
            if self._stopped.wait(self._pause):
                return

    def stop(self) -> None:
        """Write no further file."""
        self._stopped.set()


def read_events(files: Iterator[Path]) -> list[Event]:
    """Return the events of some files, as a program that is not Spark reads them."""
    return [
        Event(int(record["number"]), datetime.fromisoformat(record["time"]))
        for file in files
        for record in map(json.loads, file.read_text().splitlines())
    ]
