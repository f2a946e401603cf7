"""The stand-in for a query that a drain keeps from starting."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from spark_drain_agent.agent_thread import callback_call, in_callback, in_drains_callback
from spark_drain_agent.clock import monotonic
from spark_drain_agent.gate import Gate, Phase
from spark_drain_agent.user_code.batch_marks import UnknownBatchError, is_drain_pane

__all__ = ["HeldQuery", "HeldQueryError"]

_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 30.0
_PATIENCE_LOOKS = 20
"""How long, and how often, a function that a drain waits for may, in one call, look at a query that neither reads nor ends before it."""


class HeldQueryError(RuntimeError):
    """A function that Spark or a drain has called waits for a query that the drain keeps from starting; neither would ever end."""


def _well() -> None:
    return None


def _drain_waits_for_caller() -> bool:
    """Return whether the calling code is the function of a flush batch, or one that a drain has called."""
    try:
        return in_drains_callback() or (in_callback() and is_drain_pane())
    except UnknownBatchError:
        return False


class HeldQuery(StreamingQuery):
    """What ``start()`` returns while a drain is past its point of no return: a query that waits and reads nothing.

    Parameters
    ----------
    name
        The query's name, or "".
    gate
        Opens when the drain's notification is gone.
    over
        Whether the query ends although the driver is held, given whether the application has stopped it: the JVM is gone, a signal has
        told the program to end, or the drain whose flush has started it was given up.
    query_id
        Id of the query that was drained from the same checkpoint, "" where that is not known.
    failure
        Returns what the drain failed with, None where it was not given up.
    """

    def __init__(
        self,
        name: str,
        gate: Gate,
        over: Callable[[bool], bool],
        query_id: str = "",
        failure: Callable[[], StreamingQueryException | None] = _well,
    ) -> None:
        self._name = name
        self._gate = gate
        self._over = over
        self._failure = failure
        self._stopped, self._hold = False, gate.times_held
        self._asking: object | None = None
        self._first_asked, self._looks = monotonic(), 0
        self.awaited_by_flush = _drain_waits_for_caller()
        """Whether a function has started it that the drain waits for."""
        self._run_id = str(uuid.uuid4())
        self._id = query_id or self._run_id

    def __repr__(self) -> str:
        return f"<query {self._name or self._id} held by spark-drain>"

    @property
    def id(self) -> str:
        """The drained query's id, as a restart from its checkpoint has it; an id of its own where there is none."""
        return self._id

    @property
    def runId(self) -> str:  # noqa: N802  # pyspark's name
        """An id of its own."""
        return self._run_id

    @property
    def name(self) -> str:
        """The query's name, or ""."""
        return self._name

    @property
    def isActive(self) -> bool:  # noqa: N802  # pyspark's name
        """True until the drain lets the driver go, or the driver ends."""
        self._refuse_endless_polling()
        return self.waits

    @property
    def is_due(self) -> bool:
        """Whether its start is still to begin: not where the application starts it again."""
        return False

    @property
    def is_pending(self) -> bool:
        """Whether it is still to be started, or being started."""
        return False

    @property
    def is_started(self) -> bool:
        """Whether another query runs, or has run, in its place."""
        return False

    @property
    def has_failed(self) -> bool:
        """Whether its start has failed."""
        return False

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Nothing: no other start is in its way."""
        yield

    def start_if_due(self) -> None:
        """Nothing: the application starts it again."""

    @property
    def is_listed(self) -> bool:
        """Whether it is among the queries that run, for whoever looks for it there."""
        if self.awaited_by_flush:
            self._refuse_endless_polling()
        return self.waits

    @property
    def waits(self) -> bool:
        """Whether the drain has not let the driver go, and the driver does not end."""
        return self._waits(self._stopped)

    def _waits(self, stopped: bool) -> bool:
        return self._is_held and not self._over(stopped)

    @property
    def _is_held(self) -> bool:
        return self._gate.phase is Phase.HELD and self._is_of_this_hold

    @property
    def _is_of_this_hold(self) -> bool:
        return self._gate.times_held == self._hold

    @property
    def is_let_end(self) -> bool:
        """Whether it has ended although the drain holds the driver."""
        return self._is_held and not self.waits

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802  # pyspark's name
        """Wait until the drain lets the driver go; without a limit only where the drain does not wait for the caller."""
        if timeout is None:
            self._refuse_endless_wait()
        ended = self._wait(timeout)
        return None if timeout is None else ended

    def _wait(self, timeout: float | None = None, *, for_its_end: bool = True) -> bool:
        give_up = None if timeout is None else monotonic() + timeout
        while self._waits(self._stopped or not for_its_end):
            self._refuse_endless_polling()
            left = _LOOK_SECONDS if give_up is None else min(_LOOK_SECONDS, give_up - monotonic())
            if left <= 0:
                return False
            self._gate.wait_while(Phase.HELD, left)
        if (failure := self._failure()) is not None:
            raise failure
        return True

    @property
    def status(self) -> dict[str, Any]:
        """Say what is going on, in the shape of Spark's status."""
        self._refuse_endless_polling()
        return {"message": "Held by spark-drain", "isDataAvailable": False, "isTriggerActive": False}

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802  # pyspark's name
        """No progress."""
        self._refuse_endless_polling()
        return []

    @property
    def lastProgress(self) -> None:  # noqa: N802  # pyspark's name
        """No progress."""
        self._refuse_endless_polling()

    def processAllAvailable(self) -> None:  # noqa: N802  # pyspark's name
        """Wait until the drain lets the driver go, or it ends; only where the drain does not wait for the caller."""
        self._refuse_endless_wait()
        self._wait(for_its_end=False)

    def _refuse_endless_polling(self) -> None:
        if not _drain_waits_for_caller():
            return
        call = callback_call()
        if call is not self._asking:
            self._asking, self._first_asked, self._looks = call, monotonic(), 0
        self._looks += 1
        if self._looks > _PATIENCE_LOOKS and monotonic() - self._first_asked > _PATIENCE_SECONDS:
            self._refuse_endless_wait()

    def _refuse_endless_wait(self) -> None:
        if in_callback() and self.waits:
            raise HeldQueryError(
                f"query {self._name or self._id!r} was not started, since a drain is past its point of no return, and the drain may "
                "wait for the function that waits for it: let functions that Spark calls start queries only, and wait for them elsewhere"
            )

    def stop(self) -> None:
        """Take note of it; nothing runs."""
        self.withdraw()

    def withdraw(self) -> None:
        """Take note that it is not to be started, without waiting for a start that is under way."""
        self._stopped = True

    def explain(self, extended: bool = False) -> None:  # noqa: ARG002  # pyspark's signature
        """Say that nothing runs."""
        print("Held by spark-drain: no query is running.")

    def exception(self) -> StreamingQueryException | None:
        """Return what the drain failed with; None while it lasts, and where it was not given up."""
        if self.awaited_by_flush:
            self._refuse_endless_polling()
        return None if self.waits else self._failure()
