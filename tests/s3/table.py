"""The query whose drains are interrupted, and a sink that counts each event once however often a batch is repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent import is_drain_pane
from spark_drain_agent.checkpoint.files import nothing

from tests.semantics.operator_table import EVENTS, FIRST, SECOND
from tests.semantics.warm import Application, Batches, Event, Input, read_all

__all__ = ["ALL", "DRAINED", "READ", "Parts", "Table", "add_rest", "check_versions", "counted", "input_before"]

Parts = Mapping[tuple[str, int], tuple[bool, Counter[int]]]
"""By ids of query and batch: whether it was a flush, and the events in it."""

READ, ALL = Counter(event.id for event in FIRST), Counter(event.id for event in EVENTS)
"""The events before a drain, and with those that come after it."""

_LAST = Event(max(ALL) + 1, "a", 10_000)
"""Closes the windows of all others; its own stays open."""

DRAINED = ALL + Counter([_LAST.id])
"""What is counted after a drain of all that there is."""


def input_before(spark: SparkSession, folder: Path) -> Input:
    """Return the input that is read before the drain, in one batch, after which a second one emits the windows that it has closed."""
    events = Input(spark, folder)
    events.add(FIRST)
    return events


def add_rest(events: Input) -> None:
    """Add what is read after the drain."""
    events.add([*SECOND, _LAST])


def counted(events: Input, *keys: str) -> DataFrame:
    """Return the query, which has another state schema with other keys."""
    return events.stream().groupBy(F.window("at", "10 seconds"), *keys).agg(F.collect_list("id").alias("ids")).select(*keys, "ids")


class Table:
    """A foreachBatch sink that replaces what it wrote under the same query and batch id.

    Parameters
    ----------
    parts
        What it holds already.
    written
        Called after each batch.
    """

    def __init__(self, parts: Parts | None = None, written: Callable[[], None] = nothing) -> None:
        self.parts = dict(parts or {})
        self._written = written

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Take one batch."""
        query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        assert query_id is not None
        self.parts[query_id, batch_id] = (is_drain_pane(), Counter(number for row in batch.collect() for number in row["ids"]))
        self._written()

    @property
    def ids(self) -> Counter[int]:
        """How often each event is counted."""
        return sum((ids for _, ids in self.parts.values()), Counter())

    @property
    def flushed(self) -> bool:
        """Whether it has taken a flush."""
        return any(pane for pane, _ in self.parts.values())


def check_versions(application: Callable[[], Application], spark: SparkSession, bucket: str, folder: Path) -> None:
    """Drain a query, and another version of it on the same checkpoint; each event is counted once."""
    events, sink = Input(spark, folder), Batches()
    for file, keys in ((FIRST, ("key",)), (SECOND, ())):
        events.add(file)
        app = application()
        read_all(app.start(counted(events, *keys), sink))
        report = app.drain()
        assert report.archive.startswith(f"{bucket}/q/_drain/")
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS)
