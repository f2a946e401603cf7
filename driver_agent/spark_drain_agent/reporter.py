"""Writing the drain report: every step, whole, in order; an unreachable store only delays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from spark_drain_store import Channel, DrainReport, DrainState, StoreError

from spark_drain_agent.identity import Identity
from spark_drain_agent.trace import LOG

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
    uuid
        The drain.
    """

    def __init__(self, channel: Channel, identity: Identity, uuid: str, inherited: DrainReport | None) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        runs = inherited.runs if inherited else ()
        base = inherited or DrainReport(uuid=uuid, runs=(), state=DrainState.ACKNOWLEDGED, updated_at=datetime.now(UTC), sequence=0)
        self._report = replace(
            base,
            runs=runs if runs[-1:] == (identity.run_id,) else (*runs, identity.run_id),
            driver_pod_uid=identity.pod_uid,
            driver_pod_name=identity.pod_name,
            agent_version=identity.agent_version,
            spark_version=identity.spark_version,
        )
        self._unwritten = False

    @property
    def report(self) -> DrainReport:
        """The report as it was last changed."""
        return self._report

    def change(self, **changes: Any) -> bool:
        """Change fields and try to write once; False when the store did not take it (the next change or `retry` writes it)."""
        with self._lock:
            self._report = replace(self._report, **changes, sequence=self._report.sequence + 1, updated_at=datetime.now(UTC))
            return self._write()

    def retry(self) -> bool:
        """Write what an earlier `change` could not; True when nothing is left to write."""
        with self._lock:
            return self._write() if self._unwritten else True

    def change_surely(self, keep_waiting: Callable[[float], None], **changes: Any) -> None:
        """Change fields and wait until the store has taken it; ``keep_waiting`` gets a number of seconds to wait and may raise."""
        written = self.change(**changes)
        while not written:
            keep_waiting(_RETRY_SECONDS)
            written = self.retry()

    def _write(self) -> bool:
        try:
            self._channel.reports.write({self._report.uuid: self._report.to_json()})
        except StoreError as error:
            LOG.warning("drain %s: the report could not be written yet: %s", self._report.uuid, error)
            self._unwritten = True
            return False
        self._unwritten = False
        return True
