"""A store that refuses, or breaks off, requests in the middle of a drain: it is tried again, and nothing is lost or counted twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF

from tests.s3.test_crashes import BEGINS, CHANGES
from tests.s3.test_drain import counted
from tests.semantics.operator_table import EVENTS, FIRST, SECOND
from tests.semantics.warm import Application, Batches, Input, read_all
from tests.support.s3_proxy import Fault
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_OF_THE_DRAIN = r"_drain/|/metadata$|/state$|/(offsets|commits)/-?\d+$"
"""Keys that are no temporary files: where Spark's own fail, it is the batch that fails, whether or not it is drained."""
_IN_EVERY_RUN = {("Auto", 3, 403), ("WorkCopy", 9, 500)}
POINTS = [(flush, number, status) for flush in ("Auto", "WorkCopy") for number in range(1, 30) for status in (403, 500, 0)]


@pytest.mark.parametrize(
    "point",
    [pytest.param(each, marks=[] if each in _IN_EVERY_RUN else pytest.mark.soak) for each in POINTS],
    ids=lambda point: "-".join(map(str, point)),
)
def test_refused_at_a_request(
    point: tuple[str, int, int], s3: S3Server, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """Twice in a row, as often as the client asks; the object is not changed."""
    flush, number, status = point
    spark.conf.set(FLUSH_CONF, flush)
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(FIRST)
    app = application()
    read_all(app.start(counted(events.stream(), "key"), sink))
    s3.proxy.fault = Fault(CHANGES, _OF_THE_DRAIN, after=BEGINS, nth=number, times=2, status=status)
    app.drain()
    app.close()
    s3.proxy.fault = None
    events.add(SECOND)
    again = application()
    read_all(again.start(counted(events.stream()), sink))
    again.drain()
    assert sink.ids == Counter(event.id for event in EVENTS)
