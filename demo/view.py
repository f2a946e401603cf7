"""The live view."""

import shutil
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from demo.feeds import Feeds
from demo.job import APPLICATION, FlightsJob, reached

_PLAIN_SECONDS = 10.0
_PASSING = ("Reconciling", "Stalled")  # they say that it goes on, not how far it is


class View:
    """Shows numbered steps, and below the current one what the cluster does.

    Parameters
    ----------
    total : int
        Number of steps.
    stream : TextIO
        A terminal is redrawn; anything else gets a line when a phase changes, and every ten seconds.
    """

    def __init__(self, total: int, stream: TextIO = sys.stdout) -> None:
        self._total = total
        self._stream = stream
        self._redraw = stream.isatty()
        self._step = 0
        self._began = time.monotonic()
        self._drawn = 0
        self._last: tuple[str, float] = ("", 0.0)

    def elapsed(self) -> float:
        """Return the seconds since the view was made."""
        return time.monotonic() - self._began

    def step(self, text: str) -> None:
        """Announce the next step."""
        self._step += 1
        self.say(text)

    def say(self, text: str) -> None:
        """Print one line that stays."""
        self._wipe()
        print(f"[{self._step}/{self._total}] {self.elapsed():6.1f}s  {text}", file=self._stream, flush=True)

    def block(self, text: str) -> None:
        """Print lines that stay, indented."""
        self._wipe()
        print("\n".join(f"    {line}".rstrip() for line in text.rstrip("\n").splitlines()), file=self._stream, flush=True)

    def show(self, job: FlightsJob, feed: Feeds, version: str) -> None:
        """Show how things are now."""
        numbers, phase = flow(job, feed, version), story(feed, version)
        if self._redraw:
            self._wipe()
            # A line that wraps would be two lines to wipe.
            width = shutil.get_terminal_size().columns - 1
            self._stream.write("".join(f"    {line}"[:width] + "\n" for line in (numbers, phase)))
            self._stream.flush()
            self._drawn = 2
            return
        before, when = self._last
        if phase != before or self.elapsed() - when >= _PLAIN_SECONDS:
            self._last = (phase, self.elapsed())
            print(f"      {self.elapsed():8.1f}s  {numbers} | {phase}", file=self._stream, flush=True)

    def _wipe(self) -> None:
        if self._drawn:
            self._stream.write(f"\x1b[{self._drawn}F\x1b[J")
            self._drawn = 0


def flow(job: FlightsJob, feed: Feeds, version: str) -> str:
    """Return the numbers: records produced and read, lag, open windows."""
    produced = sum(job.produced(feed).values())
    seen = feed.seen(version)
    read = sum(reached(seen or feed.seen("v1")).values())
    last = max(seen, key=lambda batch: batch.number, default=None)
    batch = f"batch {last.number}, {last.open_rows:,} open windows, watermark {last.watermark[:10]}" if last else "no batch yet"
    return f"produced {produced:,}  read {read:,}  lag {max(0, produced - read):,}  {version}: {batch}"


def story(feed: Feeds, version: str) -> str:
    """Return the words: application, pods, drain."""
    application = feed.object("SparkApplication", APPLICATION) or {}
    state = application.get("status", {}).get("applicationState", {}).get("state") or "NEW"
    pods = [f"{count} {role}{'s' * (count != 1)}" for role in ("driver", "executor") if (count := len(running(feed, role)))]
    drain = feed.object("PipelineDrain", f"flights-{version}")
    return f"application {state}, {', '.join(pods) or 'no pods'}{_drain(drain) if drain else ''}"


def running(feed: Feeds, role: str) -> list[Mapping[str, Any]]:
    """Return the Spark pods of one role that run."""
    return [pod for pod in feed.pods(role) if pod["status"].get("phase") == "Running"]


def _drain(drain: Mapping[str, Any]) -> str:
    status = drain.get("status", {})
    holds = [item["type"] for item in status.get("conditions", []) if item["status"] == "True" and item["type"] not in _PASSING]
    return f", drain {status.get('phase', 'new')} ({' '.join(holds) or 'no condition yet'})"
