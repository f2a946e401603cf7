"""The stand-in for a bounded query: what behind its end relies on all being read must not go on before it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_store.reentrant_event import ReentrantEvent

from spark_drain_agent.agent_thread import in_callback
from spark_drain_agent.clock import monotonic
from spark_drain_agent.driver.held_query import HeldQuery
from spark_drain_agent.gate import Gate, Phase
from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.errors import in_words
from spark_drain_agent.start_waits import StartGivenUpError, given_up_when

__all__ = ["HeldBoundedQuery"]

_LOOK_SECONDS = 0.5
_LONGEST_START_SECONDS = 60.0
_PATIENCE_SECONDS = 10.0
"""How long a start waits for the end of another one's."""


class HeldBoundedQuery(HeldQuery):
    """A query that waits as long as the drain holds the driver, and is started by the agent then.

    No thread of the application starts it: one may be a listener that Spark calls in a start, or have a limit to its wait.

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
        self._starting, self._begun = threading.Lock(), ReentrantEvent()
        self._turn = threading.Condition()
        self._launched, self._rivals = False, 0
        self._error: BaseException | None = None
        self._query: StreamingQuery | None = None

    @property
    def is_due(self) -> bool:
        """Whether its start is still to begin."""
        return self.is_pending and not self._starting.locked()

    @property
    def is_pending(self) -> bool:
        """Whether it is still to be started, or being started."""
        return not self._begun.is_set() and (self._starting.locked() or not self._is_given_up)

    @property
    def is_started(self) -> bool:
        """Whether Spark's own query runs, or has run, in its place."""
        return self._query is not None and self._begun.is_set()

    @property
    def has_failed(self) -> bool:
        """Whether its start has failed."""
        return self._error is not None

    @property
    def _is_of_this_hold(self) -> bool:
        return not self._begun.is_set() and (self.is_pending or super()._is_of_this_hold)

    @property
    def _is_given_up(self) -> bool:
        return self._stopped or self._failure() is not None

    def start_if_due(self) -> None:
        """Start it, once; whoever awaits it is told what the start has raised. Call it when the drain has let the driver go."""
        if self._is_given_up or not self._starting.acquire(blocking=False):
            return
        try:
            with given_up_when(lambda: self._stopped, launches=self._launches):
                self._query = self._begin()
            if self._stopped:
                self._query.stop()
        except StartGivenUpError:
            self._fail(self._not_started(f"the application starts it itself, which takes longer than {_LONGEST_START_SECONDS:g} s"))
        except BaseException as error:
            self._fail(error)
        finally:
            self._begun.set()

    def _fail(self, error: BaseException) -> None:
        if self._stopped:
            return
        self._error = error
        # a program that does not await the query is told of it by its log alone
        LOG.warning("the start of query %r, which a drain had put off, has failed: %s", self._name or self._id, in_words(error))

    def _launches(self) -> bool:
        """Return whether Spark is to be asked to start it, once no start of the application in its place is under way.

        One that takes long may be waiting for this query's end, in a listener.
        """
        with self._turn:
            its_turn = self._turn.wait_for(lambda: self._stopped or self._rivals == 0, _LONGEST_START_SECONDS)
            self._launched = its_turn and not self._stopped
            return self._launched

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Let a start of the application in its place come first, or second where Spark is starting this one; one of them is to run."""
        with self._turn:
            self._rivals += 1
            launched = self._launched
        if launched and not in_callback():
            self._begun.wait(_PATIENCE_SECONDS)
        try:
            yield
            if not launched:
                self.withdraw()  # Spark would stop the other one
        finally:
            with self._turn:
                self._rivals -= 1
                self._turn.notify_all()

    def withdraw(self) -> None:
        """Take note that it is not to be started, without waiting for a start that is under way."""
        with self._turn:
            super().withdraw()
            self._turn.notify_all()

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
        if not self._begun.is_set():
            return super().isActive or (self.is_pending and not self._is_left(stopped=False))
        return self._query is not None and self._query.isActive

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802  # pyspark's name
        """Wait until the query has ended, or raise what has kept it from being started."""
        if timeout is None:
            self._refuse_endless_wait()
        give_up = None if timeout is None else monotonic() + timeout
        if not self._await_start(give_up):
            return False
        if self._query is not None:
            return self._query.awaitTermination(None if give_up is None else max(0.001, give_up - monotonic()))  # type: ignore[arg-type]
        return None if timeout is None else True

    def processAllAvailable(self) -> None:  # noqa: N802  # pyspark's name
        """Wait until the query has read everything, or raise what has kept it from being started."""
        self._refuse_endless_wait()
        self._await_start(None)
        if self._query is not None:
            self._query.processAllAvailable()

    def _await_start(self, give_up: float | None) -> bool:
        """Wait until the query is started, or will never be; False when the time was over before."""
        while not self._begun.is_set():
            self._refuse_endless_polling()
            waits = self._waits(stopped=True)
            if not waits and (failure := self._failure()) is not None:
                raise failure
            if not waits and self._stopped and not self._starting.locked():
                return True
            if self._is_left(stopped=True):
                raise self._unread()
            left = _LOOK_SECONDS if give_up is None else min(_LOOK_SECONDS, give_up - monotonic())
            if left <= 0:
                return False
            if waits:
                self._gate.wait_while(Phase.HELD, left)
            else:
                self._begun.wait(left)
        if self._error is not None:
            raise self._error
        return True

    def _is_left(self, *, stopped: bool) -> bool:
        """Whether the program ends in the drain; a drain that holds it anew in this moment is none that it ends in."""
        return self._gate.phase is Phase.HELD and self._over(stopped)

    def _unread(self) -> StreamingQueryException:
        return self._not_started("the program ends in a drain")

    def _not_started(self, why: str) -> StreamingQueryException:
        return StreamingQueryException(f"query {self._name or self._id!r} was not started, and has read nothing: {why}")

    def exception(self) -> StreamingQueryException | None:
        """Return what the query has failed with, or has kept it from being started; None until it is started."""
        if self._query is not None:
            return self._query.exception()
        error = self._error
        if error is None:
            left = self.is_pending and not self.waits and self._is_left(stopped=False)
            return self._unread() if left else super().exception()
        if isinstance(error, StreamingQueryException):
            return error
        failed = StreamingQueryException(str(error))
        failed.__cause__ = error
        return failed

    def stop(self) -> None:
        """Stop the query, or take note that it is not to be started; return when a start under way is over, as its name is free then."""
        self.withdraw()
        while self._starting.locked() and not in_callback() and not self._begun.wait(_LOOK_SECONDS):
            pass  # a listener is not made to wait for the start that Spark calls it in
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
