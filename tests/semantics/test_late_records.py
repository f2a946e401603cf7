"""Spark drops as late what is older than the watermark of the batch before; the batch after a drain drops the same."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_store import DrainState

from tests.semantics.warm import Application, Batches, Event, Input, read_all, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_ENDED_SECONDS = 0.5


@dataclass
class Held(Batches):
    """Holds batch 1 until it may go on, so that a drain meets a query that has more to read."""

    there: threading.Event = field(default_factory=threading.Event)
    may_go_on: threading.Event = field(default_factory=threading.Event)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        if batch_id == 1:
            self.there.set()
            self.may_go_on.wait()
        super().__call__(batch, batch_id)


def windows(events: Input) -> DataFrame:
    return events.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids")


@pytest.mark.parametrize("policy", ["Reseed", "Continue"])
def test_a_record_that_was_to_be_counted_next_is_not_late_after_the_drain(
    policy: str, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """The watermark has just risen over the records that are read next, as of a slower partition, and plain Spark counts them."""
    events, sink = Input(spark, tmp_path / "events"), Held()
    times = (range(20, 30), range(100, 110), range(50, 60))
    events.add(*([Event(10 * number + at % 10, "a", at) for at in file] for number, file in enumerate(times)))
    app = application()
    app.start(windows(events), sink)
    until(sink.there.is_set, "batch 1")
    with app.user_waits():
        drain_id = app.ask(checkpoint__policy=policy)
        app.answer(drain_id, DrainState.STOPPING)
        time.sleep(_ENDED_SECONDS)  # the state is told before the sources are taken away
        sink.may_go_on.set()
        app.answer(drain_id, DrainState.DRAINED)
    app.finish(drain_id)
    app.close()
    assert set(sink.ids) == set(range(20))
    app = application()
    read_all(app.start(windows(events), sink))
    app.drain()
    assert sink.ids == Counter(range(30))
