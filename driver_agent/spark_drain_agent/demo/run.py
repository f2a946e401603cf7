"""The story of the demo: v1, drain, incompatible v2 on the same checkpoint, drain, ledger."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from spark_drain_store import Channel, DrainReport, DrainState, open_channel
from spark_drain_store.drains import Drains

from spark_drain_agent.demo.driver import DemoError, Driver, store_command
from spark_drain_agent.demo.events import EventWriter
from spark_drain_agent.demo.ledger import Window, balance, read_windows
from spark_drain_agent.demo.progress import events_read, look
from spark_drain_agent.demo.screen import Screen

__all__ = ["main"]

_FILES, _PAUSE_SECONDS = 40, 0.5
_DRAIN_V1_AT = 700
_PATIENCE_SECONDS = 600.0
_MEANING = {
    DrainState.ACKNOWLEDGED: "the agent has seen the request and plans",
    DrainState.STOPPING: "no further event is read; the batch in flight commits",
    DrainState.COMMITTING: "the point of no return: every query can be drained",
    DrainState.FLUSHING: "one last batch at the end of time fires every open window",
    DrainState.REPORTING: "executors report",
    DrainState.DRAINED: "the checkpoint is ready for any next version; the driver waits to be let go",
}


def main(arguments: Sequence[str]) -> int:
    """Run the demo; returns 0 only when every event was counted exactly once."""
    parser = argparse.ArgumentParser(
        prog="python -m spark_drain_agent demo",
        description="Drain a streaming pipeline on this machine and start an incompatible version exactly after it. Takes two minutes.",
    )
    parser.add_argument("--keep", action="store_true", help="leave the folder with events, checkpoint and output for a look")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through what ends drivers and removes the folder
    folder = Path(tempfile.mkdtemp(prefix="spark-drain-demo-"))
    try:
        return _Story(folder, Screen(sys.stdout, 7)).tell()
    except DemoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    finally:
        if options.keep:
            print(f"everything is left in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


class _Story:
    def __init__(self, folder: Path, screen: Screen) -> None:
        self._screen = screen
        self._folder = folder
        self._events = folder / "events"
        self._events.mkdir()
        self._checkpoint = folder / "checkpoint"
        self._store = f"file:{folder / 'store'}"
        self._channel: Channel = open_channel(self._store)
        self._writer = EventWriter(self._events, _FILES, _PAUSE_SECONDS)

    def tell(self) -> int:
        screen = self._screen
        screen.step(f"{self._writer.total} numbered events are written from now on, {_FILES} files; all is in {self._folder}")
        self._writer.start()
        try:
            v1 = self._version("v1", timedelta(minutes=5), 0, "counts events per 5-minute window", lambda read: read >= _DRAIN_V1_AT)
            self._show_end("v1", v1)
            after = events_read(self._checkpoint)
            screen.say(f"v1 has counted {after} events; meanwhile {self._writer.written} are written, the next version goes on there")
            total = self._writer.total
            what = "other windows, another key, another state schema, the same checkpoint"
            v2 = self._version("v2", timedelta(minutes=20), after, what, lambda read: read >= total)
            self._show_end("v2", v2)
        finally:
            self._writer.stop()
        return self._balance()

    def _version(self, version: str, width: timedelta, after: int, what: str, enough: Callable[[int], bool]) -> DrainReport:
        """Run one version until it has read enough, and drain it."""
        screen = self._screen
        driver = Driver(version, self._folder, self._store)
        try:
            screen.step(f"{version} starts: {what}")
            screen.say("$ " + " ".join(driver.command))
            self._run_until(driver, width, after, enough)
            screen.step(f"{version} is asked to drain")
            screen.say(f"$ python -m spark_drain_store --metadata-store {self._store} drain write")
            drain_id = store_command(self._store, "drain", "write")
            screen.say(drain_id)
            report = self._follow_drain(driver, drain_id)
            screen.step(f"{version} is let go")
            screen.say(f"$ python -m spark_drain_store --metadata-store {self._store} drain cleanup")
            store_command(self._store, "drain", "cleanup")
            code = driver.wait(120)
            if code != 0:
                raise DemoError(f"the driver of {version} ended with exit code {code} instead of 0")
            screen.say(f"the driver of {version} has ended by itself with exit code 0")
            return report
        finally:
            driver.close()

    def _run_until(self, driver: Driver, width: timedelta, after: int, enough: Callable[[int], bool]) -> None:
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while True:
            driver.check()
            windows = read_windows(driver.output)
            now = look(self._checkpoint, windows, width, after)
            counts = f"windows: {now.emitted} emitted, {now.open} open" if now.read > after else "Spark is starting"
            self._screen.follow(f"events: {self._writer.written} written, {now.read} read; {counts}")
            if enough(now.read) and windows:
                return
            if time.monotonic() > give_up:
                raise DemoError(
                    f"{driver.version} has read {now.read} events and emitted {now.emitted} windows in {_PATIENCE_SECONDS:.0f} s"
                )
            time.sleep(0.25)

    def _follow_drain(self, driver: Driver, drain_id: str) -> DrainReport:
        give_up = time.monotonic() + _PATIENCE_SECONDS
        coming, shown = list(_MEANING), ""
        while time.monotonic() < give_up:
            driver.check()
            report = Drains.read(self._channel).reports.get(drain_id)
            while report is not None and report.state in coming:  # what lasts for milliseconds goes by between two looks
                passed = coming.pop(0)
                self._screen.say(f"{passed:<12} {_MEANING[passed]}")
            if report is not None and report.state not in _MEANING:
                line = f"{report.state:<12} {report.reason}: {report.message}"
                if line != shown:
                    shown = line
                    self._screen.say(line)
            if report is not None and report.state is DrainState.DRAINED:
                return report
            if report is not None and report.state.finished:
                raise DemoError(f"the drain ended {report.state} ({report.reason}): {report.message}")
            time.sleep(0.02)
        raise DemoError(f"the drain of {driver.version} did not end within {_PATIENCE_SECONDS:.0f} s")

    def _show_end(self, version: str, report: DrainReport) -> None:
        screen = self._screen
        for query in report.queries:
            windows = read_windows(self._folder / "output" / version)
            early = [window for window in windows if window.batch_id == query.flush_batch_id]
            if version == "v2" and {window for window in windows if window.early} != set(early):
                raise DemoError("is_drain_pane() in the pipeline and flushBatchId in the report disagree")
            watermark = datetime.fromtimestamp((query.watermark_ms or 0) / 1000, UTC)
            batch, policy = query.last_batch_id, query.checkpoint_policy
            screen.say(f"query {query.name!r}: last batch {batch}, watermark {watermark:%H:%M:%S}, checkpoint policy {policy}")
            for source, offset in query.end_offsets.items():
                screen.say(f"  ends at {offset} of {source.replace(str(self._folder), '...')}")
            screen.say(f"  {len(windows)} windows, of which {len(early)} were emitted early, in batch {query.flush_batch_id}:")
            closing = sorted(windows, key=lambda window: (window.start, window.kind))
            rows = [*closing[max(0, len(closing) - len(early) - 2) : len(closing) - len(early) + 2], None, *closing[-1:]]
            for window in rows:
                screen.say("    ..." if window is None else f"    {_described(window, drain_pane=window in early)}")

    def _balance(self) -> int:
        windows = [window for version in ("v1", "v2") for window in read_windows(self._folder / "output" / version)]
        ledger = balance(self._events, windows)
        for version in ("v1", "v2"):
            numbers = [number for window in read_windows(self._folder / "output" / version) for number in window.numbers]
            self._screen.say(f"{version} counted events {min(numbers)} to {max(numbers)}: {len(numbers)}")
        print(ledger, flush=True)
        return 0 if ledger.exact else 1


def _described(window: Window, *, drain_pane: bool) -> str:
    mark = "   drain pane" if drain_pane else ""
    return f"{window.start:%H:%M}-{window.end:%H:%M} {window.kind:<6}{window.count:>4} events{mark}"
