"""Every operator as the incompatible next version, and as the one before, on one checkpoint and one output: each under ids that go on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.semantics.operator_table import CASES, CLICKS, Case
from tests.semantics.parquet_folder import read_parquet
from tests.semantics.test_batch_ids import Idempotent
from tests.semantics.test_operators import last_of_each
from tests.semantics.warm import PROVIDERS, Application, Event, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

EARLIER = [Event(number, "xyz"[number % 3], 2 * number - 1100) for number in range(500, 512)]
LATER = [Event(number, "xyz"[number % 3], 2 * number - 400) for number in range(600, 612)]
_SAMPLE = {
    ("tumbling window", "rocksdb"),
    ("stream-stream join, full outer", "hdfs"),
}
"""What `make test` runs of it: an aggregation, and four stores in a partition."""


def pairs() -> list[Any]:
    """Return each operator that this Spark has with each provider; tests/versions runs them with other releases."""
    release = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    found = [(case, provider) for case in CASES if case.since <= release for provider in case.providers]
    return [
        pytest.param(case, provider, id=f"{case.name}-{provider}", marks=() if (case.name, provider) in _SAMPLE else (pytest.mark.soak,))
        for case, provider in found
    ]


def other(events: Input, clicks: Input, *, both: bool, seconds: int) -> DataFrame:
    """Return a query of the same sources that has nothing in common with the operator's."""
    read = events.stream().union(clicks.stream()) if both else events.stream()
    return read.groupBy(F.window("at", f"{seconds} seconds"), "key").agg(F.sort_array(F.collect_list("id")), F.max("at"))


def packed(frame: DataFrame, version: int) -> DataFrame:
    """Return rows of any kind as rows of one kind, for a folder that all versions write to."""
    columns = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
    return columns.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row"), F.lit(version).alias("version"))


def plain(value: Any) -> Any:
    """Return what a packed row was."""
    if isinstance(value, list):
        return tuple(sorted(plain(item) for item in value))
    return json.dumps(value) if isinstance(value, dict) else value


class Output:
    """Where all versions write: a parquet folder, or for other output modes than append a sink that skips the ids it has seen."""

    def __init__(self, spark: SparkSession, folder: Path, *, files: bool) -> None:
        self._spark, self._folder, self._files, self.sink = spark, folder, files, Idempotent()

    def start(self, app: Application, frame: DataFrame, mode: str, base: Path) -> Any:
        writer = frame.writeStream.outputMode(mode).queryName("q").option("checkpointLocation", str(base))
        writer = writer.format("parquet").option("path", str(self._folder)) if self._files else writer.foreachBatch(self.sink)
        return app.launch(writer)

    def rows(self, version: int) -> list[tuple[Any, ...]]:
        """Return the rows of one version."""
        assert self.sink.refused == []
        if not self._files:
            return _unpacked(self.sink.rows, version)
        by_spark = [tuple(row) for row in self._spark.read.parquet(str(self._folder)).select("row", "version").collect()]
        by_hand = [(row["row"], row["version"]) for row in read_parquet(self._folder)]
        assert Counter(by_spark) == Counter(by_hand)
        return _unpacked(by_spark, version)


def _unpacked(rows: list[Any], version: int) -> list[tuple[Any, ...]]:
    return [tuple(plain(cell) for cell in json.loads(row).values()) for row, written_by in rows if written_by == version]


def ids_of(rows: list[tuple[Any, ...]]) -> Counter[int]:
    return Counter(number for row in rows for cell in row if isinstance(cell, tuple) for number in cell)


@pytest.mark.parametrize(("case", "provider"), pairs())
def test_an_incompatible_version_under_ids_that_go_on(
    case: Case, provider: str, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
    events, clicks = Input(spark, tmp_path / "events"), Input(spark, tmp_path / "clicks")
    both, base = "join" in case.name, tmp_path / "checkpoints/q"
    output = Output(spark, tmp_path / "out", files=case.mode == "append")

    def run(frame: DataFrame, version: int, mode: str, records: int | None) -> None:
        app = application()
        read_all(output.start(app, packed(frame, version), mode, base), records)
        report = app.drain(stateLossPolicy="Accept", checkpoint__policy="Reseed")
        assert report.checkpoint_policy == "Reseed"
        app.close()

    mode = "update" if case.mode == "complete" else case.mode
    events.add(EARLIER)
    run(other(events, clicks, both=both, seconds=10), 1, mode, None)
    events.add(*case.files)
    clicks.add(*(CLICKS if both else ()))
    run(case.build(events, clicks), 2, case.mode, None if case.idle else sum(map(len, case.files)))
    events.add(LATER)
    run(other(events, clicks, both=both, seconds=7), 3, mode, None)

    assert ids_of(last_of_each(output.rows(1), mode)) == Counter(event.id for event in EARLIER)
    assert Counter(last_of_each(output.rows(2), case.mode)) == Counter(case.truth)
    assert ids_of(last_of_each(output.rows(3), mode)) == Counter(event.id for event in LATER)
