"""Queries for tests of what the application's threads do beside a drain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from spark_drain_agent.driver.held_query import HeldQuery
from spark_drain_agent.gate import Gate, Phase

from tests.agent.apps.sinks import read, to_files

__all__ = ["Listener", "Started", "TurningGate", "in_thread", "listening", "running", "start", "writer"]

Result = TypeVar("Result")
_SECONDS = 90.0


def writer(spark: SparkSession, base: Path, name: str, each: Callable[[DataFrame, int], None] | None = None) -> DataStreamWriter:
    """Return a query without state that writes each event to ``out/<name>``, after ``each`` was called with the batch."""
    to_sink = to_files(base / "out" / name)

    def write(batch: DataFrame, batch_id: int) -> None:
        if each is not None:
            each(batch, batch_id)
        to_sink(batch, batch_id)

    made = read(spark, base).writeStream.queryName(name).option("checkpointLocation", str(base / "checkpoints" / name))
    return made.foreachBatch(write)


def start(spark: SparkSession, base: Path, name: str, each: Callable[[DataFrame, int], None] | None = None) -> StreamingQuery:
    """Start such a query."""
    return writer(spark, base, name, each).start()


class Started:
    """A call in a thread of its own, so that a test ends when the call does not."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._outcome: list[Any] = []
        self._error: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome.append(self._call())
        except BaseException as error:
            self._error.append(error)

    @property
    def over(self) -> bool:
        """Whether the call has returned or raised."""
        return not self._thread.is_alive()

    @property
    def failed(self) -> bool:
        """Whether the call has raised."""
        return bool(self._error)

    def result(self, seconds: float = _SECONDS) -> Any:
        """Return what the call returned, or raise what it raised; fails when it does neither."""
        self._thread.join(seconds)
        assert self.over, f"a call that does not return: {self._call}"
        if self._error:
            raise self._error[0]
        return self._outcome[0]


def in_thread(call: Callable[[], Result], seconds: float = _SECONDS) -> Result:
    """Return what the call returns; fails when it hangs."""
    found: Result = Started(call).result(seconds)
    return found


class Listener(StreamingQueryListener):
    """Calls a function with the name of each query that starts, in the thread in which Spark says so."""

    def __init__(self, started: Callable[[str | None], object]) -> None:
        self._started = started
        self.errors: list[BaseException] = []

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # pyspark's name
        try:
            self._started(event.name)
        except BaseException as error:
            self.errors.append(error)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # pyspark's name
        return

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802  # pyspark's name
        return

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  # pyspark's name
        return


@contextmanager
def listening(spark: SparkSession, started: Callable[[str | None], object], kind: type[Listener] = Listener) -> Iterator[Listener]:
    """Have a function called for each query that starts in this block."""
    listener = kind(started)
    spark.streams.addListener(listener)
    try:
        yield listener
    finally:
        spark.streams.removeListener(listener)


class TurningGate(Gate):
    """A held gate that turns right after it was read for the n-th time.

    Parameters
    ----------
    turns
        The phase it then turns to by the number of the reading.
    """

    def __init__(self, turns: Mapping[int, Phase]) -> None:
        super().__init__()
        self.turn(Phase.HELD)
        self._to, self._readings = turns, 0

    @property
    def phase(self) -> Phase:
        """The present phase, which may be over when it is returned."""
        found = super().phase
        self._readings += 1
        if self._readings in self._to:
            self.turn(self._to[self._readings])
        return found


def running() -> StreamingQuery:
    """Return a query that does not end."""
    gate = Gate()
    gate.turn(Phase.HELD)
    return HeldQuery("running", gate, lambda _: False)
