"""A query without its sources: what is given back, closed and kept, and how the lock is waited for."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from tests.agent.apps.sinks import read, to_files
from tests.agent.harness import Feed, eventually
from tests.agent.warm import Warm

pytestmark = pytest.mark.spark


def start(warm: Warm, folder: Path, **options: str) -> StreamingQuery:
    frame = read(warm.session, folder).select("id")
    return frame.writeStream.options(**options).foreachBatch(to_files(folder / "out")).start()


@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_a_drained_query_closes_the_connections_of_its_sources(warm: Warm, tmp_path: Path, flush: str) -> None:
    """The application goes on after the drain: what its sources hold would be held as long as it lives."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        lines = warm.session.readStream.format("socket").option("host", host).option("port", port).load()
        warm.session.conf.set("spark.sparkdrain.flush", flush)
        query = (
            lines.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(to_files(tmp_path / "out")).start()
        )
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"a line\n")
            query.processAllAvailable()
            warm.drain(afterDrain="Keep")
            connection.settimeout(10)
            assert connection.recv(1) == b"", "the source has closed its end"
    warm.session.conf.unset("spark.sparkdrain.flush")


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_query_that_is_stopped_while_it_is_frozen_closes_its_connections(warm: Warm, tmp_path: Path, withdrawn: bool) -> None:
    """The drain waits for another one, in the middle of a batch, and may be withdrawn before that ends."""
    begun, free = threading.Event(), threading.Event()

    def slow(batch: DataFrame, batch_id: int) -> None:
        begun.set()
        free.wait(300)

    Feed(tmp_path / "input").add()
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        lines = warm.session.readStream.format("socket").option("host", host).option("port", port).load()
        query = lines.writeStream.option("checkpointLocation", str(tmp_path / "lines")).foreachBatch(to_files(tmp_path / "out")).start()
        other = read(warm.session, tmp_path).writeStream.option("checkpointLocation", str(tmp_path / "other")).foreachBatch(slow).start()
        connection, _ = server.accept()
        assert begun.wait(60)
        try:
            with connection, warm.requested() as asked:
                warm.drains.reaches(asked, "Stopping", reason="BatchRunning")
                query.stop()
                if withdrawn:
                    warm.drains.withdraw(asked)
                    warm.drains.reaches(asked, "Withdrawn")
                connection.settimeout(10)
                assert connection.recv(1) == b"", "the source has closed its end"
                free.set()
        finally:
            free.set()
            other.stop()


@pytest.mark.parametrize("below", ["", "kept"])
def test_a_withdrawn_drain_leaves_a_temporary_checkpoint_to_spark(warm: Warm, tmp_path: Path, below: str) -> None:
    """Spark deletes a folder in its own temporary place at the query's end, and keeps one below spark.sql.streaming.checkpointLocation."""
    Feed(tmp_path / "input").add()
    if below:
        warm.session.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / below))
    query = start(warm, tmp_path)
    warm.session.conf.unset("spark.sql.streaming.checkpointLocation")
    query.processAllAvailable()
    tracked = warm.agent.registry.all()[-1]
    folder = Path(tracked.live.checkpoint_root.removeprefix("file:"))
    tracked.keep_temporary_checkpoint()
    tracked.drop_temporary_checkpoint()
    query.stop()
    assert folder.exists() == bool(below)


def test_the_lock_is_not_waited_for_beyond_the_deadline(warm: Warm, tmp_path: Path) -> None:
    """A query holds its lock as long as its sources think about how far their data goes."""
    Feed(tmp_path / "input").add()
    query = start(warm, tmp_path, checkpointLocation=str(tmp_path / "checkpoint"))
    query.processAllAvailable()
    live = warm.agent.registry.all()[-1].live
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with live.progress_lock():
            held.set()
            let_go.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    looks = []

    def give_up() -> None:
        looks.append(1)
        if len(looks) == 3:
            raise TimeoutError

    try:
        with pytest.raises(TimeoutError), live.progress_lock(give_up):
            pass
        let_go.set()
        with live.progress_lock(give_up):
            pass
    finally:
        let_go.set()
        holder.join(60)
    eventually(lambda: not holder.is_alive(), "the lock to be free")
    assert len(looks) == 3
