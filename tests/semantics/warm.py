"""Application after application in one warm JVM: each an agent with a store of its own, and queries that it sees starting."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from spark_drain_agent import is_drain_pane
from spark_drain_agent.drain.identity import identify
from spark_drain_agent.driver.agent import Agent
from spark_drain_agent.gate import Phase
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import Channel, DrainNotification, DrainReport, DrainState, QueryReport

from tests.support.waiting import eventually

__all__ = ["MIDNIGHT", "PROVIDERS", "Application", "Batches", "Event", "Input", "applications", "day", "read_all", "until"]

PROVIDERS = {
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
_SECONDS = 240.0
_DAY = datetime(2026, 1, 1, tzinfo=UTC)
MIDNIGHT = int(_DAY.timestamp())
"""The second that the events' times count from."""

Found = TypeVar("Found")


def until(look: Callable[[], Found | None], what: str) -> Found:
    """Return the first truthy answer."""
    return eventually(look, what, _SECONDS, every=0.02)


def day(seconds: int) -> str:
    """Return the time so many seconds after midnight."""
    return (_DAY + timedelta(seconds=seconds)).isoformat()


@dataclass(frozen=True)
class Event:
    """One input record, ``at`` seconds after midnight."""

    id: int
    key: str
    at: int


class Input:
    """A folder of JSON files, each read by a batch of its own."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self.folder, self._files = spark, folder, 0
        folder.mkdir(parents=True)

    def add(self, *files: Iterable[Event]) -> None:
        """Write files, in the order in which Spark is to read them."""
        for events in files:
            lines = [json.dumps({"id": e.id, "key": e.key, "at": day(e.at)}) for e in events]
            part = self.folder / f".{self._files:03}"
            part.write_text("\n".join(lines))
            os.utime(part, (1_700_000_000 + self._files,) * 2)
            part.rename(self.folder / f"{self._files:03}.json")
            self._files += 1

    def stream(self, watermark: str | None = "12 seconds", source: str | None = None) -> DataFrame:
        """Return the streaming DataFrame of the folder; from Spark 4.2 on its source may have a name."""
        reader = self._spark.readStream.schema("id LONG, key STRING, at TIMESTAMP").option("maxFilesPerTrigger", 1)
        read = (reader if source is None else reader.name(source)).json(str(self.folder))
        return read.withWatermark("at", watermark) if watermark else read


@dataclass
class Batches:
    """A foreachBatch sink that remembers what it was given."""

    written: list[tuple[bool, tuple[Any, ...]]] = field(default_factory=list)
    panes: int = 0

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Take one batch."""
        pane = is_drain_pane()
        self.panes += pane
        self.written += [(pane, _plain(row)) for row in batch.collect()]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """All rows so far."""
        return [row for _, row in self.written]

    @property
    def ids(self) -> Counter[int]:
        """How often each event's number is in the rows' arrays."""
        return Counter(number for row in self.rows for cell in row if isinstance(cell, tuple) for number in cell)

    @property
    def drained(self) -> list[tuple[Any, ...]]:
        """The rows that a flush emitted."""
        return [row for pane, row in self.written if pane]


def _plain(value: Any) -> Any:
    """Return a row as nested tuples, its arrays in order."""
    if isinstance(value, list):
        return tuple(sorted(_plain(item) for item in value))
    return tuple(_plain(item) for item in value) if isinstance(value, tuple) else value


class Application:
    """One life of an application in the warm JVM; `close` ends it.

    Parameters
    ----------
    spark
        The warm session.
    base
        Folder for checkpoints, or its URI; a later application with the same folder goes on where this one ended.
    channel
        What an earlier life has left in its store; None is nothing.
    """

    def __init__(self, spark: SparkSession, base: Path | str, channel: Channel | None = None) -> None:
        self.base = base
        self.channel = channel if channel is not None else Channel.in_memory()
        self._internals = SparkInternals(spark)
        self._agent = Agent(self._internals, self.channel, identify(str(uuid4()), self._internals.spark_version))
        self._queries: list[StreamingQuery] = []
        self._agent.begin()

    @property
    def run_id(self) -> str:
        """Id of this life."""
        return self._agent.identity.run_id

    def start(
        self, frame: DataFrame, sink: Callable[[DataFrame, int], None], mode: str = "append", name: str = "q", **options: str
    ) -> StreamingQuery:
        """Start a query as the hooks would."""
        writer = frame.writeStream.foreachBatch(sink).outputMode(mode).queryName(name).options(**options)
        return self.launch(writer.option("checkpointLocation", f"{self.base}/{name}"))

    def launch(self, writer: DataStreamWriter, table: str | None = None) -> StreamingQuery:
        """Start a writer as the hooks would."""
        start = writer.start if table is None else partial(writer.toTable, table)
        query = self._agent.start_query(self._internals, lambda: self._internals.capture(writer, table=table), start)
        self._queries.append(query)
        return query

    def ask(self, mode: str = "Drain", **options: str) -> str:
        """Request a drain; ``__`` in an option's name stands for its dot."""
        notification = DrainNotification(
            drain_id=str(uuid4()),
            created_at=datetime.now(UTC),
            mode=mode,
            options={name.replace("__", "."): value for name, value in options.items()},
        )
        self.channel.requests.write({notification.drain_id: notification.to_json()})
        return notification.drain_id

    def report(self, drain_id: str) -> DrainReport | None:
        """Return what is reported of a drain so far."""
        text = self.channel.reports.read().entries.get(drain_id)
        return DrainReport.from_json(drain_id, text) if text else None

    def answer(self, drain_id: str, *states: DrainState, patient: bool = False) -> DrainReport:
        """Wait until a drain is in one of these states; being stalled is only endured by the patient."""

        def look() -> DrainReport | None:
            report = self.report(drain_id)
            if report is None or report.state in states:
                return report
            assert not report.state.finished, report
            assert patient or report.state is not DrainState.STALLED, report
            return None

        return until(look, f"drain {drain_id} to be {' or '.join(states)}")

    @contextmanager
    def asked(self, *states: DrainState, mode: str = "Drain", **options: str) -> Iterator[DrainReport]:
        """Request a drain, wait for its answer, and remove the request at the end of the block."""
        with self.user_waits():
            drain_id = self.ask(mode, **options)
            yield self.answer(drain_id, *states)
        self.finish(drain_id)

    def user_waits(self) -> AbstractContextManager[object]:
        """Do what a main thread in awaitTermination does."""
        return self._agent.gate.user_waits()

    def finish(self, drain_id: str) -> None:
        """Remove a request and wait until the agent has let the application go."""
        self.channel.requests.write({drain_id: None})
        until(lambda: self._agent.gate.phase is Phase.OPEN and self._agent._drain is None, "the drain to be over")

    def drain(self, mode: str = "Drain", **options: str) -> QueryReport:
        """Drain, and return the report of the only query."""
        with self.asked(DrainState.DRAINED, mode=mode, **options) as report:
            (query,) = report.queries
            return query

    def close(self) -> None:
        """End the agent and whatever still runs."""
        self.channel.requests.write(dict.fromkeys(self.channel.requests.read().entries))
        for query in self._queries:
            query.stop()
        self._agent.close()


@contextmanager
def applications(spark: SparkSession, folder: Path | str) -> Iterator[Callable[..., Application]]:
    """Yield a function that starts an application in this folder, or in another one; at the end of the block all are closed."""
    begun: list[Application] = []

    def begin(base: Path | str = folder) -> Application:
        begun.append(Application(spark, base))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()


def read_all(query: StreamingQuery, records: int | None = None) -> None:
    """Wait until all is read and committed; a query that never rests says so by the number of records that there are."""
    if records is None:
        query.processAllAvailable()
        return

    def look() -> bool:
        if (error := query.exception()) is not None:
            raise AssertionError(str(error))
        return bool(sum(progress["numInputRows"] for progress in query.recentProgress) >= records)

    until(look, f"{records} records to be read")
