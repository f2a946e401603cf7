"""By what an application is known to be the version that was drained."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.writer import SAME_VERSION_CONF, VERSION_CONF

from tests.semantics.warm import Application, Batches, Event, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("words", "same"), [((None, None), False), (("1", "1"), True), (("1", "2"), False)])
def test_the_owners_word_stands_for_a_plan_that_each_start_makes_anew(
    words: tuple[str | None, str | None], same: bool, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    events, found = Input(spark, tmp_path / "events"), set()
    for number, word in enumerate(words):
        events.add([Event(number, "a", number)])
        spark.conf.unset(VERSION_CONF) if word is None else spark.conf.set(VERSION_CONF, word)
        app = application()
        try:
            counted = events.stream().groupBy("key", F.lit(time.time()).alias("started")).count()
            read_all(app.start(counted, Batches(), mode="update"), None)
            app.drain(stateLossPolicy="Accept")
        finally:
            app.close()
            spark.conf.unset(VERSION_CONF)
        found.add(json.loads((tmp_path / "checkpoints/q/_drain/journal").read_text())["fingerprint"])
    assert (len(found) == 1) is same


def test_the_owners_word_is_the_one_of_the_start(spark: SparkSession, tmp_path: Path) -> None:
    """A program may have another one for each of its queries, and a drain looks at them later."""
    internals, writer, found = SparkInternals(spark), Input(spark, tmp_path / "events").stream().writeStream.format("noop"), []
    for number in "12":
        for conf in (VERSION_CONF, SAME_VERSION_CONF):
            spark.conf.set(conf, f"drain-{number}")
        found.append(TrackedQuery(internals, internals.capture(writer), None))
    for conf in (VERSION_CONF, SAME_VERSION_CONF):
        spark.conf.unset(conf)
    assert len({query.fingerprint for query in found}) == 2
    assert [query.is_version_of("drain-1", "") for query in found] == [True, False]


@pytest.mark.parametrize(
    ("planned", "word", "same"),
    [
        *(pytest.param(*each, marks=pytest.mark.soak) for each in (("a", "", True), ("b", "", False))),
        ("b", "drain-1", True),
        ("b", "drain-2", False),
    ],
)
def test_the_owners_word_stands_for_an_interrupted_drain(planned: str, word: str, same: bool) -> None:
    query: Any = SimpleNamespace(fingerprint="a", captured=SimpleNamespace(same_version_as=word))
    assert TrackedQuery.is_version_of(query, "drain-1", planned) is same


def test_a_version_is_known_by_where_it_writes_to(application: Callable[[], Application], spark: SparkSession, tmp_path: Path) -> None:
    def to(folder: str, mode: str = "json") -> Callable[[DataFrame, int], None]:
        def write(batch: DataFrame, batch_id: int) -> None:
            batch.write.format(mode).save(f"{folder}/{batch_id}")

        return write

    events = Input(spark, tmp_path / "events")
    events.add([Event(0, "a", 0)])
    internals = SparkInternals(spark)

    def fingerprint(writer: DataStreamWriter, path: str | None = None) -> str:
        captured = internals.capture(writer if path is None else writer.option("path", path))
        return f"{internals.sink_text(captured)} {internals.analyzed_text(captured)}"

    def batches(function: Callable[[DataFrame, int], None]) -> str:
        return fingerprint(events.stream().writeStream.foreachBatch(function))

    def rows(folder: str) -> str:
        def write(row: Row) -> None:
            Path(folder).write_text(str(row))

        return fingerprint(events.stream().writeStream.foreach(write))

    def files(path: str) -> str:
        return fingerprint(events.stream().writeStream.format("json"), path)

    assert batches(to("/one")) == batches(to("/one"))
    assert rows("/one") == rows("/one")
    assert files("/one") == files("/one")
    assert files("/one/secret=1") != files("/one/secret=2")

    def at(path: str) -> str:
        return internals.sink_text(internals.capture(events.stream().writeStream.format("delta"), path))

    assert at("/table") == at("file:///table/") != at("/table/secret=1")
    assert at("s3a://key:one@bucket/table") == at("s3a://key:two@bucket/table")
    different = [batches(to("/one")), batches(to("/two")), batches(Batches()), rows("/one"), rows("/two"), files("/one"), files("/two")]
    assert len(set(different)) == len(different)

    def python_source(folder: str) -> str:
        class Writer(DataSourceStreamWriter):
            def __init__(self, _: MutableMapping[str, str]) -> None: ...

            def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
                Path(folder).write_text(str(list(iterator)))
                return WriterCommitMessage()

        class Source(DataSource):
            @classmethod
            def name(cls) -> str:
                return "rows_to_files"

            def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # PySpark's name
                return Writer(self.options)

        spark.dataSource.register(Source)
        return fingerprint(events.stream().writeStream.format("rows_to_files"))

    assert python_source("/one") == python_source("/one")
    assert python_source("/one") != python_source("/two")

    def tables(**options: str) -> str:
        return fingerprint(events.stream().writeStream.format("org.example.tables").options(**options))

    assert tables(table="one", password="x", checkpointLocation="/a") == tables(table="one", password="y", checkpointLocation="/b")
    assert len({tables(table="one"), tables(table="two"), tables(keyspace="one"), tables(table="one", database="db")}) == 4
