"""The stand-in for a bounded query: what behind its end relies on all being read must not go on before it was."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.clock import monotonic
from spark_drain_agent.driver.held_query import HeldQuery
from spark_drain_agent.gate import Gate, Phase

__all__ = ["HeldBoundedQuery"]

_LOOK_SECONDS = 0.5


class HeldBoundedQuery(HeldQuery):
    """A query that waits as long as the drain holds the driver, and is started when somebody asks for it then.

    Parameters
    ----------
    name, gate, over, query_id, failure
        See `HeldQuery`.
    begin
        Starts the query, or raises what says why it is not to be started any more.
    """

    def __init__(
        self,
        name: str,
        gate: Gate,
        over: Callable[[bool], bool],
        query_id: str,
        failure: Callable[[], StreamingQueryException | None],
        *,
        begin: Callable[[], StreamingQuery],
    ) -> None:
        super().__init__(name, gate, over, query_id, failure)
        self._begin = begin
        self._claimed, self._begun = threading.RLock(), threading.Event()  # a signal handler may ask in the middle of anything
        self._by: threading.Thread | None = None
        self._error: Exception | None = None
        self._query: StreamingQuery | None = None

    @property
    def is_due(self) -> bool:
        """Whether it is still to be started."""
        return not (self._is_given_up or self._by is not None or self._begun.is_set())

    @property
    def _is_given_up(self) -> bool:
        return self._stopped or self._failure() is not None

    def started(self) -> StreamingQuery | None:
        """Return the query that was started, now or before; None where the application has stopped it, or the drain was given up.

        Also where a signal handler asks in the middle of its start. Call it when the drain has let the driver go.

        Raises
        ------
        Exception
            What the start has raised.
        """
        if self._is_given_up:
            return self._query
        while not self._begun.is_set():
            if self._begins_here():
                break
            if self._by is threading.current_thread():
                return None
            self._begun.wait(_LOOK_SECONDS)
        if self._error is not None:
            raise self._error
        return self._query

    def begin_if_due(self) -> bool:
        """Start it if that is still to be done, and return whether another thread is starting it.

        That one is not waited for: what asks may be a listener that Spark calls in the start. Call it as `started`.
        """
        return not self._begins_here() if self.is_due else self._by is not None

    def await_start(self) -> None:
        """Wait until it is started; whoever awaits its end is told what the start has raised. Call it as `started`."""
        with suppress(Exception):
            self.started()

    def _begins_here(self) -> bool:
        """Start it in this thread, and return whether it is started; False where another call is about to."""
        if not self._claimed.acquire(blocking=False):
            return False
        try:
            if self._by is None and not self._begun.is_set():
                self._by = threading.current_thread()
                try:
                    self._start()
                finally:
                    self._by = None
            return self._begun.is_set()
        finally:
            self._claimed.release()

    def _start(self) -> None:
        try:
            self._query = self._begin()
        except Exception as error:  # not Ctrl-C, after which it can be asked for again
            self._error = error
        self._begun.set()

    @property
    def id(self) -> str:
        """The query's id once it is started."""
        return super().id if self._query is None else self._query.id

    @property
    def runId(self) -> str:  # noqa: N802  # pyspark's name
        """The query's run id once it is started."""
        return super().runId if self._query is None else self._query.runId

    @property
    def isActive(self) -> bool:  # noqa: N802  # pyspark's name
        """True until the query has ended."""
        while not (self._begun.is_set() or self._is_given_up):
            if super().isActive or self._by is not None:
                return True
            if self._is_left(stopped=self._stopped):
                return False
            self.begin_if_due()
        return super().isActive if self._query is None else self._query.isActive

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802  # pyspark's name
        """Wait until the query has ended, or raise what has kept it from being started."""
        if timeout is None:
            self._refuse_endless_wait()
        give_up = None if timeout is None else monotonic() + timeout
        if not self._wait(timeout, for_its_end=False):
            return False
        query = self._let_go()
        if query is not None:
            return query.awaitTermination(None if give_up is None else max(0.001, give_up - monotonic()))  # type: ignore[arg-type]
        return None if timeout is None else True

    def processAllAvailable(self) -> None:  # noqa: N802  # pyspark's name
        """Wait until the query has read everything, or raise what has kept it from being started."""
        super().processAllAvailable()
        query = self._let_go()
        if query is not None:
            query.processAllAvailable()

    def _let_go(self) -> StreamingQuery | None:
        if self._is_left(stopped=True) and not self._stopped:
            raise self._unread()
        return self.started()

    def _is_left(self, *, stopped: bool) -> bool:
        """Whether the program ends in the drain; a drain that holds it anew in this moment is none that it ends in."""
        return self._gate.phase is Phase.HELD and self._over(stopped)

    def _unread(self) -> StreamingQueryException:
        return StreamingQueryException(
            f"query {self._name or self._id!r} was not started, and has read nothing: the program ends in a drain"
        )

    def exception(self) -> StreamingQueryException | None:
        """Return what the query has failed with, or has kept it from being started; None while it waits."""
        if not self._begun.is_set():
            if self.waits or self._is_given_up:
                return super().exception()
            if self._is_left(stopped=self._stopped):
                return self._unread()
            if self.begin_if_due():
                return None
        try:
            query = self.started()
        except StreamingQueryException as error:
            return error
        except Exception as error:
            failed = StreamingQueryException(str(error))
            failed.__cause__ = error
            return failed
        return super().exception() if query is None else query.exception()

    def stop(self) -> None:
        """Stop the query, or take note that it is not to be started."""
        super().stop()
        if self._query is not None:
            self._query.stop()

    @property
    def status(self) -> dict[str, Any]:
        """The query's status once it is started."""
        return super().status if self._query is None else self._query.status

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802  # pyspark's name
        """The query's progress once it is started."""
        return super().recentProgress if self._query is None else list(self._query.recentProgress)

    @property
    def lastProgress(self) -> Any:  # noqa: N802  # pyspark's name
        """The query's progress once it is started."""
        return super().lastProgress if self._query is None else self._query.lastProgress

    def explain(self, extended: bool = False) -> None:
        """Explain the query once it is started."""
        if self._query is None:
            super().explain(extended)
        else:
            self._query.explain(extended)
