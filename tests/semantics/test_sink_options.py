"""A library's sink may keep its own log of what it has committed below the option checkpointLocation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_agent.spark_internals import session, sink_options
from spark_drain_agent.spark_internals.reflection import private_field
from spark_drain_agent.spark_internals.trees import pairs

from tests.semantics.operator_table import EVENTS, FIRST, SECOND
from tests.semantics.warm import Application, Input

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@dataclass
class Written(WriterCommitMessage):
    """What a task has written."""

    ids: list[int]


class Logging(DataSourceStreamWriter):
    """Rows count once their batch is in the log."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._log = Path(options["checkpointLocation"], "sinks/log")

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Return the ids."""
        return Written([number for row in iterator for number in row["ids"]])

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  # PySpark's name
        """Log the batch."""
        self._log.mkdir(parents=True, exist_ok=True)
        (self._log / str(batchId)).write_text(json.dumps([number for message in messages if message for number in message.ids]))


class LoggingSource(DataSource):
    """Makes the sink."""

    @classmethod
    def name(cls) -> str:
        """Return its name."""
        return "with_a_log"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # PySpark's name
        """Return the sink."""
        return Logging(self.options)


def windows(events: Input) -> DataStreamWriter:
    """Return the writer of the ids in each window."""
    counted = events.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids"))
    return counted.select("ids").writeStream.queryName("q").outputMode("append")


def test_a_sinks_log_below_the_checkpoint_has_the_flush_on_a_work_copy(
    application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set(FLUSH_CONF, "WorkCopy")
    spark.dataSource.register(LoggingSource)
    events, checkpoint = Input(spark, tmp_path / "events"), tmp_path / "checkpoints/q"
    events.add(FIRST, SECOND)
    app = application()
    query = app.launch(windows(events).format("with_a_log").option("checkpointLocation", str(checkpoint)))
    query.processAllAvailable()
    app.drain()
    assert not [*checkpoint.glob("_drain/**/sinks")]
    logged = [json.loads(path.read_text()) for path in (checkpoint / "sinks/log").iterdir()]
    assert Counter(number for ids in logged for number in ids) == Counter(event.id for event in EVENTS)


def test_a_sink_of_the_older_kind_is_made_with_the_options_of_the_application(
    application: Callable[[], Application], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file sink stands for one of a library."""
    monkeypatch.setattr(sink_options, "_SPARKS", ("of.nobody",))
    seen: list[str] = []

    def give(*arguments: Any) -> None:
        sink_options.give_own_options(*arguments)
        options = {name.lower(): value for name, value in pairs(private_field(arguments[-1].java_sink, "options"))}
        seen.append(options["checkpointlocation"])

    monkeypatch.setattr(session, "give_own_options", give)
    spark.conf.set(FLUSH_CONF, "WorkCopy")
    events, checkpoint = Input(spark, tmp_path / "events"), tmp_path / "checkpoints/q"
    events.add(FIRST, SECOND)
    app = application()
    query = app.launch(windows(events).format("json").option("path", str(tmp_path / "out")).option("checkpointLocation", str(checkpoint)))
    query.processAllAvailable()
    app.drain()
    assert seen == [str(checkpoint)]
    rows = spark.read.json(str(tmp_path / "out")).collect()
    assert Counter(number for row in rows for number in row["ids"]) == Counter(event.id for event in EVENTS)
