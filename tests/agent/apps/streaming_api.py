"""What PySpark's documentation says of streaming queries, asked of a real one, case by case. Usage: streaming_api.py BASE NAME...

Writes what came of each case to BASE/outcomes.json, without what differs from run to run.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, DataSourceStreamWriter, InputPartition, WriterCommitMessage
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

base, names = Path(sys.argv[1]), sys.argv[2:]
spark = SparkSession.builder.getOrCreate()
ENDLESS = (float("inf"), float("nan"), 1e300, 2**62)
"""What a long of Java's cannot hold as milliseconds."""
CASES: dict[str, Callable[[Path], Any]] = {}


def case(function: Callable[[Path], Any]) -> Callable[[Path], Any]:
    CASES[function.__name__] = function
    return function


def said(error: BaseException) -> list[str]:
    """Return an exception's type and what its message has of ours."""
    return [type(error).__name__, *re.findall(r"out of milk|Cannot start query with name \w+|timeout\w*|[A-Z_]{12,}", str(error))[:3]]


def failure(function: Callable[[], Any]) -> Any:
    """Return what a call returns, or what it raises."""
    try:
        return function()
    except Exception as error:
        return said(error)


def numbers(folder: Path, files: int = 3) -> DataFrame:
    """Return a stream over so many files of four numbers each, one file a batch."""
    source = folder / "input"
    source.mkdir(exist_ok=True)
    for file in range(files):
        path = source / f"{file}.json"
        path.write_text("\n".join(json.dumps({"n": file * 4 + number}) for number in range(4)))
        os.utime(path, (1_700_000_000 + file, 1_700_000_000 + file))  # Spark reads files in the order of their age
    return spark.readStream.schema("n long").option("maxFilesPerTrigger", 1).json(str(source))


def endless() -> DataFrame:
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()


def until(true: Callable[[], Any], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(true())


def fails(_: DataFrame, __: int) -> None:
    raise ValueError("out of milk")


def failed(name: str) -> StreamingQuery:
    query = endless().writeStream.queryName(name).foreachBatch(fails).start()
    until(lambda: not query.isActive)
    return query


@case
def start_and_stop(folder: Path) -> Any:
    query = endless().writeStream.format("noop").queryName("one").option("checkpointLocation", str(folder / "cp")).start()
    seen = [query.name, query.isActive, str(uuid.UUID(query.id)) == query.id, query.id != query.runId, type(query).__name__]
    active = [each.name for each in spark.streams.active]
    same = [(spark.streams.get(query.id) or query).runId == query.runId]
    query.stop()
    query.stop()
    return seen, active, same, query.isActive, query.exception() is None, [each.name for each in spark.streams.active]


@case
def same_id_and_another_run_after_a_restart(folder: Path) -> Any:
    runs = []
    for _ in range(2):
        query = numbers(folder).writeStream.format("noop").option("checkpointLocation", str(folder / "cp")).start()
        query.processAllAvailable()
        runs.append((query.id, query.runId))
        query.stop()
    return runs[0][0] == runs[1][0], runs[0][1] == runs[1][1]


@case
def await_with_a_timeout(folder: Path) -> Any:
    query = endless().writeStream.format("noop").start()
    began = time.monotonic()
    first = query.awaitTermination(1), query.awaitTermination(timeout=1)
    waited = 1.9 <= time.monotonic() - began < 30
    wrong = [failure(lambda value=value: query.awaitTermination(value)) for value in (0, -1, "1", "abc", *ENDLESS)]  # type: ignore[misc]
    wrong_any = [failure(lambda value=value: spark.streams.awaitAnyTermination(value)) for value in (0, -1, "1", *ENDLESS)]  # type: ignore[misc]
    any_ = spark.streams.awaitAnyTermination(1)
    query.stop()
    return first, waited, wrong, wrong_any, any_, query.awaitTermination(), query.awaitTermination(5)


@case
def await_less_than_a_millisecond(folder: Path) -> Any:
    tiny: Any = 1e-9
    query = endless().writeStream.format("noop").start()
    running = failure(lambda: query.awaitTermination(tiny)), failure(lambda: spark.streams.awaitAnyTermination(tiny))
    query.stop()
    return running, failure(lambda: query.awaitTermination(tiny)), failure(lambda: spark.streams.awaitAnyTermination(tiny))


@case
def await_a_mock(_: Path) -> Any:
    """What is no query of Spark's, in the tests of an application that run beside its session."""
    ended, failed = mock.MagicMock(), mock.Mock()
    ended.awaitTermination.return_value = True
    failed.awaitTermination.side_effect = StreamingQueryException("out of milk")
    found: list[Any] = []
    waits = threading.Thread(
        target=lambda: found.extend(failure(StreamingQuery(each).awaitTermination) for each in (ended, failed)), daemon=True
    )
    waits.start()
    waits.join(30)
    return len(found), found[1:], StreamingQuery(ended).awaitTermination(1)


@case
def await_with_a_clock_that_stands_still(folder: Path) -> Any:
    query = endless().writeStream.format("noop").start()
    with mock.patch("time.monotonic", return_value=0.0), mock.patch("time.time", return_value=0.0):
        found = query.awaitTermination(1), spark.streams.awaitAnyTermination(1)
    query.stop()
    return found


@case
def await_ended_by_stop_in_another_thread(folder: Path) -> Any:
    query = endless().writeStream.format("noop").start()
    threading.Timer(1, query.stop).start()
    return query.awaitTermination(), query.isActive


@case
def await_any_and_reset(folder: Path) -> Any:
    one, other = (endless().writeStream.format("noop").queryName(name).start() for name in ("a", "b"))
    one.stop()
    first = spark.streams.awaitAnyTermination(), spark.streams.awaitAnyTermination(1)
    spark.streams.resetTerminated()
    second = spark.streams.awaitAnyTermination(1)
    other.stop()
    third = spark.streams.awaitAnyTermination(1)
    spark.streams.resetTerminated()
    return first, second, third


@case
def failure_reaches_who_waits(folder: Path) -> Any:
    query = failed("failing")
    outcomes = [failure(query.awaitTermination), failure(lambda: query.awaitTermination(5)), failure(spark.streams.awaitAnyTermination)]
    spark.streams.resetTerminated()
    exception = query.exception()
    assert exception is not None
    return (
        outcomes,
        said(exception),
        query.isActive,
        failure(query.processAllAvailable),
        failure(lambda: spark.streams.awaitAnyTermination(1)),
    )


@case
def an_older_failure_is_raised_by_await_any(folder: Path) -> Any:
    running = endless().writeStream.format("noop").start()
    failed("older")
    seen = failure(spark.streams.awaitAnyTermination), failure(lambda: spark.streams.awaitAnyTermination(1))
    running.stop()
    spark.streams.resetTerminated()
    return seen


@case
def names_are_unique(folder: Path) -> Any:
    query = endless().writeStream.format("noop").queryName("taken").start()
    again = failure(lambda: endless().writeStream.format("noop").queryName("taken").start())
    query.stop()
    after = endless().writeStream.format("noop").queryName("taken").start()
    after.stop()
    return again, after.name, failure(lambda: endless().writeStream.queryName(""))


@case
def what_start_refuses(folder: Path) -> Any:
    writer = endless().writeStream
    return [
        failure(lambda: writer.trigger(processingTime="")),
        failure(lambda: writer.trigger(**{})),
        failure(lambda: writer.trigger(processingTime="1 second", once=True)),  # type: ignore[call-overload]
        failure(lambda: writer.outputMode("")),
        failure(lambda: endless().writeStream.format("parquet").start()),
        failure(lambda: endless().writeStream.format("no-such-format").start()),
        failure(lambda: endless().groupBy("value").count().writeStream.format("noop").outputMode("append").start()),
        failure(lambda: spark.range(3).writeStream),
        failure(lambda: endless().write),
        failure(lambda: spark.streams.get("")),
        spark.streams.get(str(uuid.uuid4())) is None if hasattr(spark.streams, "get") else None,
    ]


@case
def arguments_of_start(folder: Path) -> Any:
    source = numbers(folder)
    query = source.withColumn("p", source.n % 2).writeStream.start(
        str(folder / "out"),
        format="json",
        outputMode="append",
        partitionBy="p",
        queryName="args",
        checkpointLocation=str(folder / "cp"),
        writer="an option",
    )
    query.processAllAvailable()
    query.stop()
    rows = sorted(row.n for row in spark.read.json(str(folder / "out")).collect())
    return (
        query.name,
        rows,
        sorted(path.name for path in (folder / "out").glob("p=*")),
        sorted(path.name for path in (folder / "cp").iterdir()),
    )


@case
def arguments_that_start_does_not_take(folder: Path) -> Any:
    writer: Any = endless().writeStream

    def words(start: Callable[[], Any]) -> str:
        try:
            return str(start())
        except TypeError as error:
            return str(error)

    return [
        words(lambda: writer.start("x", "parquet", "append", None, None, "one too many")),
        words(lambda: writer.start("x", "parquet", format="json")),
        words(lambda: writer.start("x", path="y")),
        words(lambda: writer.toTable("x", "parquet", "append", None, None, "one too many")),
        words(lambda: writer.toTable("x", "parquet", format="json")),
        words(writer.toTable),
    ]


@case
def a_checkpoint_that_cannot_be(folder: Path) -> Any:
    return [failure(lambda: endless().writeStream.format("noop").option("checkpointLocation", "no-such-scheme://x/y").start())]


@case
def into_a_table_and_into_memory(folder: Path) -> Any:
    table = f"t{folder.name}"
    query = numbers(folder).writeStream.toTable(table, format="parquet", checkpointLocation=str(folder / "cp"), queryName="tabled")
    query.processAllAvailable()
    query.stop()
    memory = numbers(folder).writeStream.format("memory").queryName("remembered").start()
    memory.processAllAvailable()
    memory.stop()
    return query.name, spark.table(table).count(), spark.table("remembered").count()


@case
def available_now_and_once(folder: Path) -> Any:
    frame = numbers(folder)
    done = []
    for trigger in ({"availableNow": True}, {"once": True}):
        cp = str(folder / f"cp-{next(iter(trigger))}")
        query = frame.writeStream.format("noop").trigger(**trigger).option("checkpointLocation", cp).start()
        done.append((query.awaitTermination(60), query.isActive, sum(progress.numInputRows for progress in query.recentProgress)))
    return done


@case
def progress(folder: Path) -> Any:
    query = numbers(folder).groupBy("n").count().writeStream.queryName("watched").outputMode("complete").format("noop").start()
    query.processAllAvailable()
    until(lambda: sum(each.numInputRows for each in query.recentProgress) == 12)
    last, recent = query.lastProgress, [each for each in query.recentProgress if each.numInputRows]
    assert last is not None
    status = sorted(query.status)
    query.stop()
    return (
        [(each.batchId, each.numInputRows, each.name) for each in recent],
        sorted(json.loads(last.json)),
        [(operator.operatorName, operator.numRowsTotal) for operator in last.stateOperators],
        [source.description.startswith("FileStreamSource") for source in last.sources],
        last.sink.description[:4],
        status,
        last["name"],
        query.status,
    )


@case
def explained(folder: Path) -> Any:
    query = numbers(folder).writeStream.format("noop").start()
    query.processAllAvailable()
    query.explain()
    query.stop()
    return query.lastProgress is not None


class Notes:
    """A writer that notes its calls in files, since it runs in another process."""

    def __init__(self, folder: Path, *, opens: bool = True, fails: bool = False) -> None:
        self.folder, self.opens, self.fails = folder, opens, fails

    def note(self, *words: Any) -> None:
        (self.folder / f"{uuid.uuid4()}.note").write_text(json.dumps(words))

    def open(self, partition: int, epoch: int) -> bool:
        self.note("open", partition, epoch)
        return self.opens

    def process(self, row: Row) -> None:
        if self.fails:
            raise ValueError("out of milk")
        self.note("process", row.n)

    def close(self, error: BaseException | None) -> None:
        self.note("close", error is not None)


def notes(folder: Path) -> list[Any]:
    return sorted((json.loads(path.read_text()) for path in folder.glob("*.note")), key=str)


@case
def foreach_with_a_writer(folder: Path) -> Any:
    query = numbers(folder).writeStream.foreach(Notes(folder)).start()
    query.processAllAvailable()
    query.stop()
    return notes(folder)


@case
def foreach_that_skips(folder: Path) -> Any:
    query = numbers(folder).writeStream.foreach(Notes(folder, opens=False)).start()
    query.processAllAvailable()
    query.stop()
    return notes(folder)


@case
def foreach_that_fails(folder: Path) -> Any:
    query = numbers(folder).coalesce(1).writeStream.foreach(Notes(folder, fails=True)).start()
    outcome = failure(query.awaitTermination)
    spark.streams.resetTerminated()
    return outcome, ["close", True] in notes(folder)


@case
def foreach_with_a_function(folder: Path) -> Any:
    notebook = Notes(folder)
    query = numbers(folder).writeStream.foreach(lambda row: notebook.note(row.n)).start()
    query.processAllAvailable()
    query.stop()
    wrong = [failure(lambda value=value: endless().writeStream.foreach(value)) for value in (5, object())]  # type: ignore[misc]
    return notes(folder), wrong


@case
def foreach_batch(folder: Path) -> Any:
    seen: list[Any] = []

    def collect(batch: DataFrame, number: int) -> None:
        seen.append((number, sorted(row.n for row in batch.collect()), batch.isStreaming, batch.sparkSession.range(2).count()))

    query = numbers(folder).writeStream.foreachBatch(collect).start()
    query.processAllAvailable()
    query.stop()
    return seen


@case
def foreach_batch_that_uses_its_threads_properties(folder: Path) -> Any:
    seen: list[Any] = []
    spark.sparkContext.setLocalProperty("of.the.starter", "kept")
    query = (
        numbers(folder, 1)
        .writeStream.foreachBatch(
            lambda batch, _: seen.append(
                (batch.sparkSession.sparkContext.getLocalProperty("of.the.starter"), threading.current_thread() is threading.main_thread())
            )
        )
        .start()
    )
    query.processAllAvailable()
    query.stop()
    spark.sparkContext.setLocalProperty("of.the.starter", None)  # type: ignore[arg-type]
    return seen


@case
def foreach_batch_that_fails_then_goes_on(folder: Path) -> Any:
    seen: list[int] = []

    def picky(batch: DataFrame, number: int) -> None:
        if number == 1 and not (folder / "fixed").exists():
            raise ValueError("out of milk")
        seen.append(number)

    writer = numbers(folder).writeStream.option("checkpointLocation", str(folder / "cp")).foreachBatch(picky)
    outcome = failure(writer.start().awaitTermination)
    spark.streams.resetTerminated()
    (folder / "fixed").touch()
    query = writer.start()
    query.processAllAvailable()
    query.stop()
    return outcome, seen


@case
def foreach_batch_that_stops_its_query(folder: Path) -> Any:
    stopped = threading.Event()

    def stop(batch: DataFrame, number: int) -> None:
        if not stopped.is_set():
            stopped.set()
            threading.Thread(target=query.stop).start()

    query = endless().writeStream.foreachBatch(stop).start()
    return query.awaitTermination(60), query.isActive


class Listener(StreamingQueryListener):
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.rows = 0

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self.events.append(("started", event.name, str(event.id) != str(event.runId)))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.rows += event.progress.numInputRows

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.events.append(("terminated", "out of milk" in (event.exception or ""), (event.errorClassOnException or "")[:30]))


@case
def listener(folder: Path) -> Any:
    heard = Listener()
    spark.streams.addListener(heard)
    query = numbers(folder).writeStream.format("noop").queryName("heard").start()
    at_once = list(heard.events)
    query.processAllAvailable()
    query.stop()
    first = until(lambda: len(heard.events) == 2)
    failed("heard too")
    second = until(lambda: len(heard.events) == 4)
    spark.streams.resetTerminated()
    spark.streams.removeListener(heard)
    endless().writeStream.format("noop").start().stop()
    time.sleep(1)
    return at_once, first, second, heard.events, heard.rows


@case
def listener_that_fails(folder: Path) -> Any:
    class Broken(Listener):
        def onQueryStarted(self, event: QueryStartedEvent) -> None:
            raise ValueError("out of milk")

        def onQueryProgress(self, event: QueryProgressEvent) -> None:
            raise ValueError("out of milk")

    broken, heard = Broken(), Listener()
    spark.streams.addListener(broken)
    spark.streams.addListener(heard)
    outcome = failure(lambda: numbers(folder).writeStream.format("noop").queryName("x").start().processAllAvailable())
    for query in spark.streams.active:
        query.stop()
    until(lambda: len(heard.events) == 2)
    spark.streams.removeListener(broken)
    spark.streams.removeListener(heard)
    return outcome, heard.events


class Count(DataSource):
    @classmethod
    def name(cls) -> str:
        return "count-up"

    def schema(self) -> str:
        return "n long"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return CountReader()

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:
        return CountWriter(self.options["path"])


class CountReader(DataSourceStreamReader):
    def __init__(self) -> None:
        self.latest = 0

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # the older signature, without a limit
        self.latest = min(self.latest + 3, 9)
        return {"at": self.latest}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition((start["at"], end["at"]))]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield from ((number,) for number in range(*partition.value))


class CountWriter(DataSourceStreamWriter):
    def __init__(self, path: str) -> None:
        self.folder = Path(path)

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        rows = [row.n for row in iterator]
        (self.folder / f"{uuid.uuid4()}.note").write_text(json.dumps(rows))
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        (self.folder / f"committed-{batchId}").touch()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        (self.folder / f"aborted-{batchId}").touch()


@case
def python_data_source(folder: Path) -> Any:
    spark.dataSource.register(Count)
    writer = spark.readStream.format("count-up").load().writeStream.format("count-up")
    query = writer.option("path", str(folder)).option("checkpointLocation", str(folder / "cp")).start()
    until(lambda: sum(len(rows) for rows in notes(folder)) == 9)
    query.stop()
    written = sorted(number for rows in notes(folder) for number in rows)
    return written, sorted(path.name for path in folder.glob("*-[0-9]"))[:3], query.exception() is None


@case
def several_sessions(folder: Path) -> Any:
    other = spark.newSession()
    query = other.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load().writeStream.format("noop").queryName("o").start()
    seen = [each.name for each in other.streams.active], [each.name for each in spark.streams.active], other.streams.awaitAnyTermination(1)
    query.stop()
    return seen, query.awaitTermination()


@case
def many_threads(folder: Path) -> Any:
    started: list[str] = []

    def run(name: str) -> None:
        query = endless().writeStream.format("noop").queryName(name).start()
        until(lambda: query.lastProgress)
        started.append(str(query.name))
        query.stop()

    threads = [threading.Thread(target=run, args=(f"q{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(started), len(spark.streams.active)


outcomes: dict[str, Any] = {}
for name in names or CASES:
    place = base / name
    place.mkdir()
    spark.streams.resetTerminated()
    outcomes[name] = failure(lambda name=name, place=place: CASES[name](place))  # type: ignore[misc]
    for left in spark.streams.active:
        left.stop()
(base / "outcomes.json").write_text(json.dumps(outcomes, default=str))
spark.stop()
