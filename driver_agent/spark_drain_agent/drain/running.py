"""What a drain waits for before its point of no return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from spark_drain_store import QueryReport, reasons

from spark_drain_agent.clock import monotonic
from spark_drain_agent.drain.reporter import Reporter
from spark_drain_agent.drain.uncommitted_query import UncommittedQuery
from spark_drain_agent.spark_internals.errors import JavaError

__all__ = ["Running", "under_way"]

_TELL_AGAIN_SECONDS = 2.0


def under_way(targets: Iterable[UncommittedQuery]) -> str:
    """Return what still has to end of what frozen queries began, or ""."""
    return ", ".join(part for target in targets if (part := target.under_way()))


class Running:
    """Reports what still runs: one query may end long before another.

    Parameters
    ----------
    reporter
        The drain's report.
    targets
        Queries that are waited for together.
    reports
        Of all queries of the drain.
    """

    def __init__(self, reporter: Reporter, targets: Sequence[UncommittedQuery], reports: tuple[QueryReport, ...]) -> None:
        self._reporter, self._targets, self._reports = reporter, targets, reports
        self._told, self._tell_at = "", monotonic()
        self._tell(under_way(targets))

    def tell(self) -> None:
        """Report it anew, now and then, where it is not the same any more."""
        if monotonic() >= self._tell_at:
            with suppress(*JavaError, OSError):  # the wait itself meets that too
                self._tell(under_way(self._targets))

    def _tell(self, running: str) -> None:
        self._tell_at = monotonic() + _TELL_AGAIN_SECONDS
        if running not in ("", self._told):
            self._told = running
            self._reporter.change(reason=reasons.BATCH_RUNNING, message=f"waits for {running}", queries=self._reports)
