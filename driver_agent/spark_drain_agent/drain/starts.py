"""Before a drain decides: starts in flight come to their ends, and a query that was just stopped may be started again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from spark_drain_store import reasons

from spark_drain_agent.clock import monotonic
from spark_drain_agent.drain.ended import DrainEndedError
from spark_drain_agent.drain.host import DrainHost
from spark_drain_agent.queries.standing import Standing
from spark_drain_agent.queries.tracked import TrackedQuery

__all__ = ["Starts"]

_RESTART_SECONDS = 2.0
"""For an application that has stopped a query to start it again."""
_RESTLESS = 3
"""So many times within one drain a query is stopped by an application that does so again and again."""
_SILENT_SECONDS = 10.0
_STARTING = "waits until the application has started {}, which takes long where a source or a listener does"


class Starts:
    """What the application starts while a drain can still be given up.

    Parameters
    ----------
    host
        The agent.
    concerns
        Tells of a query whether it belongs to the drain.
    pause
        Waits for a moment; raises `DrainEndedError` where the drain is not to go on.
    tell
        Puts a message into the drain's report.
    """

    def __init__(
        self, host: DrainHost, concerns: Callable[[TrackedQuery], bool], pause: Callable[[], None], tell: Callable[[str], object]
    ) -> None:
        self._host, self._concerns, self._pause, self._tell = host, concerns, pause, tell
        self._seen: set[TrackedQuery] = set()
        self._awaited: set[TrackedQuery] = set()

    def known(self) -> tuple[TrackedQuery, ...]:
        """Return the queries that belong to the drain, by the order of their start."""
        return tuple(item for item in self._host.registry.all() if self._concerns(item))

    def gone_on(self) -> bool:
        """Return whether the application has, or had, a query that neither a drain nor the application itself has ended."""
        there = (item for item in self._host.registry.all() if not self._host.held.ended(item))
        return any(item.standing() in (Standing.RUNS, Standing.FINISHED) for item in there)

    def let_restart(self) -> None:
        """Give an application time to start again what it has stopped: a program that restarts its queries has not left them behind.

        So it may be with those that an earlier drain has ended. It may start them one after the other, so each start gives it that time
        anew for those that are left.
        """
        awaited = self._stopped() - self._awaited
        self._awaited |= awaited
        self._seen.update(self.known())
        while awaited:
            until = monotonic() + _RESTART_SECONDS
            while (left := awaited & self._stopped()) == awaited and monotonic() < until:
                self._pause()
            if left == awaited:
                return
            awaited = left

    @property
    def may_restart(self) -> bool:
        """Whether a query was stopped that `let_restart` has not waited for."""
        return not self._stopped() <= self._awaited

    def restless(self) -> str:
        """Return the queries that the application stops again and again, or ""."""
        times = Counter(item.label for item in self._seen if _was_stopped(item) and not self._host.held.ended(item))
        return ", ".join(sorted(label for label, stopped in times.items() if stopped >= _RESTLESS))

    def _stopped(self) -> set[TrackedQuery]:
        """Return the queries that the application has stopped, or an earlier drain has ended, and that were not started again."""
        return {item for item in self.known() if _was_stopped(item)}

    def wait(self) -> None:
        """Let the starts in flight come to their ends: what they start has to be planned too."""
        gate = self._host.gate
        awaited = [item for item in gate.starts_in_flight() if self._concerns(item)]
        starting = ", ".join(item.label for item in awaited)
        tell_at, told = monotonic() + _SILENT_SECONDS, False
        try:
            while any(item in awaited for item in gate.starts_in_flight()):
                if not told and monotonic() > tell_at:
                    told = True
                    self._tell(_STARTING.format(starting))
                self._pause()
        except DrainEndedError as ended:
            if ended.reason != reasons.DEADLINE_EXCEEDED:
                raise
            raise ended.adding(f"still being started: {starting}") from ended
        if told:
            self._tell("")


def _was_stopped(item: TrackedQuery) -> bool:
    return item.standing() is Standing.STOPPED
