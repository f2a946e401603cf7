"""How far the pipeline is, learned from its files alone: the script under the agent is not asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from spark_drain_agent.demo.events import read_events
from spark_drain_agent.demo.ledger import Window

__all__ = ["Progress", "events_read", "look"]


@dataclass(frozen=True)
class Progress:
    """One look at a version of the pipeline.

    Parameters
    ----------
    read
        Events that batches have read since the checkpoint was made.
    emitted
        Windows in the output of this version.
    open
        Windows that hold events and have not been emitted.
    """

    read: int
    emitted: int
    open: int


def _files_read(checkpoint: Path) -> Iterator[Path]:
    """Yield the files named in the source's own log, each once; compacted log files repeat earlier ones."""
    names = set()
    for log in (checkpoint / "sources" / "0").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            names.add(json.loads(line)["path"].removeprefix("file://"))
    yield from map(Path, sorted(names))


def events_read(checkpoint: Path) -> int:
    """Return how many events the batches have read."""
    return len(read_events(_files_read(checkpoint)))


def look(checkpoint: Path, windows: list[Window], width: timedelta, after: int = 0) -> Progress:
    """Look at a version that began with the event numbered ``after``; ``width`` is that of its windows."""
    read = read_events(_files_read(checkpoint))
    begun = {_start(event.time, width) for event in read if event.number >= after}
    emitted = {window.start for window in windows}
    return Progress(read=len(read), emitted=len(windows), open=len(begun - emitted))


def _start(time: datetime, width: timedelta) -> datetime:
    return time - (time - datetime.fromtimestamp(0, time.tzinfo)) % width
