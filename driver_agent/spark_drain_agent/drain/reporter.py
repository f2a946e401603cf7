"""Writing the drain report: every step, whole, in order; an unreachable store only delays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from spark_drain_store import Channel, DrainReport, DrainState, EntryTooLargeError, StoreError
from spark_drain_store.drains import read_reports

from spark_drain_agent.clock import monotonic, utc_now
from spark_drain_agent.drain.identity import Identity
from spark_drain_agent.drain.report_size import MOST_STEPS, shrunk
from spark_drain_agent.milestones import LOG

__all__ = ["Reporter"]

_RETRY_SECONDS = 1.0


class Reporter:
    """The report of one drain.

    Parameters
    ----------
    channel
        Where to write.
    identity
        Who reports.
    inherited
        The report that an earlier run left, whose runs and queries are kept.
    drain_id
        The drain.
    """

    def __init__(self, channel: Channel, identity: Identity, drain_id: str, inherited: DrainReport | None) -> None:
        self._channel = channel
        self._lock = threading.RLock()  # a signal handler may report in the middle of a report of its own thread
        runs = inherited.runs if inherited else ()
        base = inherited or DrainReport(drain_id=drain_id, runs=(), state=DrainState.ACKNOWLEDGED, updated_at=utc_now(), sequence=0)
        self._report = replace(
            base,
            runs=runs if runs[-1:] == (identity.run_id,) else (*runs, identity.run_id),
            driver_pod_uid=identity.pod_uid,
            driver_pod_name=identity.pod_name,
            agent_version=identity.agent_version,
            spark_version=identity.spark_version,
        )
        self._unwritten = False
        self._warned = ""
        self._steps = 0
        self._timings: dict[str, float] = {}

    @property
    def report(self) -> DrainReport:
        """The report as it was last changed."""
        return self._report

    def change(self, **changes: Any) -> bool:
        """Change fields and try to write once; False when the store did not take it (the next change or `retry` writes it)."""
        with self._lock:
            self.prepare(**changes)
            return self._write()

    def prepare(self, **changes: Any) -> None:
        """Change fields without writing them: the next `change` or `retry` does."""
        with self._lock:
            now = utc_now()
            changed = replace(self._report, **changes, sequence=self._report.sequence + 1, updated_at=now)
            self._report = replace(changed, drained_at=_drained_at(changed, now))
            self._unwritten = True

    def retry(self) -> bool:
        """Write what an earlier `change` could not; True when nothing is left to write."""
        with self._lock:
            return self._write() if self._unwritten else True

    def change_surely(self, nobody_asks: Callable[[float], bool], **changes: Any) -> bool:
        """Change fields and wait until the store has taken it, or nobody asks any more: False then.

        Parameters
        ----------
        nobody_asks
            Waits so many seconds at most, and returns whether the drain's request was removed meanwhile; may raise.
        changes
            The fields.
        """
        written = self.change(**changes)
        while not written and not nobody_asks(_RETRY_SECONDS):
            written = self.retry()
        return written

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the seconds of this block to `timings`."""
        begun = monotonic()
        yield
        self._timings[name] = round(self._timings.get(name, 0.0) + monotonic() - begun, 3)

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by name, of what was `timed` until now; they are in the report once they are given to `change`."""
        return dict(self._timings)

    def _write(self) -> bool:
        drain_id = self._report.drain_id
        self._unwritten = True
        for steps in range(self._steps, MOST_STEPS + 1):
            self._steps, report = steps, self._report
            try:
                self._channel.reports.write({drain_id: shrunk(report, steps).to_json()})
            except EntryTooLargeError as error:
                LOG.warning("drain %s: the report is too large: %s", drain_id, error)
            except StoreError as error:
                self._warn(error)
                return False
            else:
                self._unwritten, self._warned = False, ""
                return self._report is report or self._write()
        return self._make_room() and self._write()

    def _make_room(self) -> bool:
        """Remove reports of this application's ended drains that nobody asks for any more; False where there are none."""
        try:
            asked = self._channel.requests.read().entries
            reports, _ = read_reports(self._channel.reports.read())
            over = [key for key, report in reports.items() if report.state.finished and key not in asked and key != self._report.drain_id]
            if over:
                LOG.warning("drain %s: the reports of ended drains make room for its report: %s", self._report.drain_id, ", ".join(over))
                self._channel.reports.write(dict.fromkeys(over))
        except StoreError as error:
            self._warn(error)
            return False
        return bool(over)

    def _warn(self, error: StoreError) -> None:
        """Say once what the store says again and again."""
        if self._warned != str(error):
            self._warned = str(error)
            LOG.warning("drain %s: the report could not be written yet, and is tried again: %s", self._report.drain_id, error)


def _drained_at(report: DrainReport, now: datetime) -> datetime | None:
    """Return when the drain was done: a run that inherits it goes through its last steps again, and was not later for that."""
    if report.state is DrainState.DRAINED:
        return report.drained_at or now
    return report.drained_at if report.state is DrainState.REPORTING else None
