"""CatchUp: a query reads to where its sources ended at the request, in batches of its own size, and not to where they end later."""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.gate import Phase
from spark_drain_agent.spark_internals.offsets import covers, narrowed
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.sources import goal_of
from spark_drain_store import DrainNotification, DrainState, open_channel
from spark_drain_store.drains import write_notification

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import PER_FILE, Feed, eventually, exactly, ids_in, rows_in
from tests.agent.warm import Warm

spark = pytest.mark.spark


@pytest.mark.parametrize(
    ("read_to", "latest", "covered"),
    [
        (None, None, True),
        ("5", None, True),
        ("5", "5", True),
        ("6", "5", True),
        ("4", "5", False),
        (None, "5", False),
        (None, "-1", True),
        ('{"logOffset":2}', '{"logOffset":2}', True),
        ('{"logOffset":1}', '{"logOffset":2}', False),
        ('{"a":{"0":9,"1":3}}', '{"a":{"0":9,"1":3}}', True),
        ('{"a":{"0":10,"1":2}}', '{"a":{"0":9,"1":3}}', False),
        ('{"a":{"0":9}}', '{"a":{"0":9,"1":0}}', True),
        ('{"a":{"0":9}}', '{"a":{"0":9,"1":1}}', False),
        ('{"a":{"0":9}}', '{"a":{"0":9},"b":{"0":0}}', True),
        ('{"a":{"0":9},"b":{"0":7}}', '{"a":{"0":9}}', True),
    ],
)
def test_covers(read_to: str | None, latest: str | None, covered: bool) -> None:
    assert covers(read_to, latest) is covered


@pytest.mark.parametrize(
    ("latest", "now", "left"),
    [
        ('{"a":{"0":9,"1":3}}', '{"a":{"0":12,"1":3},"new":{"0":5}}', '{"a":{"0":9,"1":3}}'),
        ('{"a":{"0":9},"deleted":{"0":4}}', '{"a":{"0":9}}', '{"a":{"0":9}}'),
        ('{"again":{"0":9,"1":3}}', '{"again":{"0":2}}', '{"again":{"0":2}}'),
    ],
)
def test_what_is_gone_is_not_waited_for(latest: str, now: str, left: str) -> None:
    assert json.loads(narrowed(latest, now)) == json.loads(left)


class QuietKafka:
    """As Kafka's source is to another thread than the query's: its first offset cannot be asked for."""

    def getClass(self) -> QuietKafka:  # noqa: N802  # Java's name
        return self

    def getName(self) -> str:  # noqa: N802
        return f"org.apache.spark.sql.kafka010.{self.getSimpleName()}"

    def getSimpleName(self) -> str:  # noqa: N802
        return "KafkaMicroBatchStream"


def test_kafka_is_not_asked_before_its_first_batch() -> None:
    assert goal_of(cast(SparkInternals, None), QuietKafka(), None) is None


class Endless(SimpleDataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # pyspark's name
        return {"n": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[Any], dict[str, int]]:
        return iter([(start["n"],)]), {"n": start["n"] + 1}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[Any]:  # noqa: N802
        return iter([(number,) for number in range(start["n"], end["n"])])

    def commit(self, end: dict[str, int]) -> None:
        pass


class Taciturn(DataSource):
    @classmethod
    def name(cls) -> str:
        return "taciturn"

    def schema(self) -> str:
        return "id LONG"

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:  # noqa: N802
        return Endless()


def start(frame: DataFrame, folder: Path, block: Path | None = None) -> StreamingQuery:
    writer = frame.writeStream.queryName("behind").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.foreachBatch(to_files(folder / "out", block=block)).start()


def held_in_the_first_batch(warm: Warm, folder: Path, files: int) -> tuple[Feed, Path]:
    """Start a query that is behind; returns its input, and the file that its first batch waits to be removed."""
    feed, block = Feed(folder / "input"), folder / "block"
    block.touch()
    feed.add(files)
    start(read(warm.session, folder).select("id"), folder, block)
    eventually((folder / "blocked").exists, "the first batch")
    return feed, block


@spark
def test_what_was_there_is_read_and_what_comes_later_is_not_waited_for(warm: Warm, tmp_path: Path) -> None:
    """The backlog is five files, one a batch; fifteen more come while the query is behind."""
    feed, block = held_in_the_first_batch(warm, tmp_path, files=5)
    wanted = feed.ids
    with warm.requested("CatchUp") as asked:
        warm.drains.reaches(asked, "Acknowledged", reason="CatchingUp")
        later = feed.add(15)
        block.unlink()
        drain = warm.drains.reaches(asked, "Drained")
    ids = ids_in(tmp_path / "out")
    assert set(wanted) <= set(ids)
    assert set(ids) < set(wanted) | set(later)
    assert set(ids.values()) == {1}
    assert {len(path.read_text().splitlines()) for path in (tmp_path / "out").glob("*.json")} == {PER_FILE}
    assert drain["timings"]["catchUp"] > 0


@spark
@pytest.mark.parametrize("named", [False, True])
def test_a_query_that_is_stopped_while_it_reads_on_is_left_out(warm: Warm, tmp_path: Path, named: bool) -> None:
    """The other one is drained, where the drain did not name what it asks for."""
    (tmp_path / "other").mkdir()
    other = Feed(tmp_path / "other/input")
    other.add(2)
    _, block = held_in_the_first_batch(warm, tmp_path, files=5)
    writer = read(warm.session, tmp_path / "other").select("id").writeStream.queryName("other")
    writer.option("checkpointLocation", str(tmp_path / "other/checkpoint")).foreachBatch(to_files(tmp_path / "other/out")).start()
    with warm.requested("CatchUp", **({"queries": "behind", "afterDrain": "Keep"} if named else {})) as asked:
        warm.drains.reaches(asked, "Acknowledged", reason="CatchingUp")
        behind = next(query for query in warm.session.streams.active if query.name == "behind")
        stopping = threading.Thread(target=behind.stop)
        stopping.start()
        block.unlink()
        stopping.join()
        drain = warm.drains.reaches(asked, "Failed" if named else "Drained")
    if named:
        assert (drain["reason"], "behind" in drain["message"]) == ("QueryFailed", True)
        eventually(lambda: ids_in(tmp_path / "other/out") == exactly(other.ids), "the other query to run on")
    else:
        assert [query["name"] for query in drain["queries"]] == ["other"]
        assert "behind" in drain["message"]
        assert ids_in(tmp_path / "other/out") == exactly(other.ids)


@spark
@pytest.mark.parametrize("files", [pytest.param(0, marks=pytest.mark.soak), 1])
def test_an_idle_query_is_not_behind(warm: Warm, tmp_path: Path, files: int) -> None:
    """Without any file no batch has ever run."""
    feed = Feed(tmp_path / "input")
    feed.add(files)
    start(read(warm.session, tmp_path).select("id"), tmp_path).processAllAvailable()
    drain = warm.drain("CatchUp")
    assert drain["queries"][0]["lastBatchId"] == (0 if files else None)
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


@spark
@pytest.mark.parametrize("source", ["rate", "rate-micro-batch", "socket"])
def test_sources_that_never_end(warm: Warm, tmp_path: Path, source: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        if source == "socket":
            threading.Thread(target=_say_hello, args=(server,), daemon=True).start()
        port = str(server.getsockname()[1])
        reader = warm.session.readStream.format(source).options(rowsPerSecond="5", rowsPerBatch="5", host="127.0.0.1", port=port)
        start(reader.load(), tmp_path)
        eventually(lambda: rows_in(tmp_path / "out"), "the first rows")
        drain = warm.drain("CatchUp")
        assert drain["queries"][0]["state"] == "Drained"
        if source == "socket":
            assert [row["value"] for row in rows_in(tmp_path / "out")] == ["hello"]


def _say_hello(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"hello\n")
        connection.recv(1)


@spark
def test_the_deadline_ends_the_wait_and_the_query_runs_on(warm: Warm, tmp_path: Path) -> None:
    feed, block = held_in_the_first_batch(warm, tmp_path, files=3)
    now = datetime.now(UTC)
    late = DrainNotification(drain_id=str(uuid.uuid4()), created_at=now, mode="CatchUp", deadline=now + timedelta(seconds=3))
    with warm.agent.gate.user_waits():
        write_notification(open_channel(warm.drains.location), late)
        drain = warm.drains.reaches(late.drain_id, "Failed")
    assert (drain["reason"], "still reading on: query 'behind'" in drain["message"]) == ("DeadlineExceeded", True)
    block.unlink()
    eventually(lambda: ids_in(tmp_path / "out") == exactly(feed.ids), "the query to run on")
    warm.drains.clean_up(everything=True)


@spark
@pytest.mark.parametrize("mode", ["Drain", pytest.param("CatchUp", marks=pytest.mark.soak)])
def test_the_deadline_passes_while_the_store_is_away(warm: Warm, tmp_path: Path, mode: str) -> None:
    """Drain waits for its last look at the store, CatchUp for a batch: neither holds the queries longer, the answer comes when it can."""
    feed, block = held_in_the_first_batch(warm, tmp_path, files=3)
    now = datetime.now(UTC)
    late = DrainNotification(drain_id=str(uuid.uuid4()), created_at=now, mode=mode, deadline=now + timedelta(seconds=4))
    with warm.agent.gate.user_waits():
        write_notification(open_channel(warm.drains.location), late)
        drain = eventually(lambda: warm.agent._drain, "the agent to see it")
        with warm.drains.unreachable():
            if mode == "Drain":
                block.unlink()
            eventually(lambda: drain.report.state is DrainState.FAILED, "the agent to give up")
            assert warm.agent.gate.phase is Phase.OPEN
            block.unlink(missing_ok=True)
            feed.add()
            eventually(lambda: ids_in(tmp_path / "out") == exactly(feed.ids), "the query to run on")
        assert warm.drains.reaches(late.drain_id, "Failed")["reason"] == "DeadlineExceeded"
    warm.drains.clean_up(everything=True)


@spark
def test_a_source_that_cannot_say_where_its_data_ends_is_named(warm: Warm, tmp_path: Path) -> None:
    warm.session.dataSource.register(Taciturn)
    query = start(warm.session.readStream.format("taciturn").load(), tmp_path)
    eventually(lambda: rows_in(tmp_path / "out"), "a batch")
    reason, message = warm.refused("CatchUp")
    assert reason == "UnsupportedQuery"
    assert "query 'behind' reads" in message
    assert "(PythonMicroBatchStream" in message
    assert "use mode 'Drain'" in message
    assert query.isActive


def test_a_query_with_a_checkpoint_that_spark_chose_catches_up(warm: Warm, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "input")
    feed.add(2)
    writer = counted(read(warm.session, tmp_path)).writeStream.queryName("temporary")
    writer.foreachBatch(to_files(tmp_path / "out")).start().processAllAvailable()
    feed.add(2)
    warm.drain("CatchUp", checkpoint__policy="Keep")
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
