"""Queries that ended before the drain: one past failure spoils no later drain, and old runs are no targets."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent import is_drain_pane
from spark_drain_agent.agent_thread import as_agent

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.driver.streams import Started, listening
from tests.agent.harness import Feed, eventually, exactly, ids_in, newest
from tests.agent.warm import Warm

pytestmark = pytest.mark.spark

KEEP = {"afterDrain": "Keep"}


def break_at_once(batch: DataFrame, batch_id: int) -> None:
    raise ArithmeticError(f"batch {batch_id} is broken")


def fail(warm: Warm, folder: Path, name: str) -> None:
    """Start a query that fails."""
    writer = read(warm.session, folder).writeStream.queryName(name).option("checkpointLocation", str(folder / f"failed-{name}"))
    query = writer.foreachBatch(break_at_once).start()
    eventually(lambda: not query.isActive and query.exception() is not None, "the query to fail")
    warm.session.streams.resetTerminated()


def start(warm: Warm, folder: Path, name: str, *, checkpoint: str = "", available: bool = False) -> StreamingQuery:
    writer = read(warm.session, folder).select("id").writeStream.queryName(name)
    writer = writer.option("checkpointLocation", str(folder / (checkpoint or f"checkpoint-{name}"))).foreachBatch(to_files(folder / "out"))
    return (writer.trigger(availableNow=True) if available else writer).start()


def failed(warm: Warm, **options: str) -> tuple[str, str]:
    with warm.requested(**options) as asked:
        drain = warm.drains.reaches(asked, "Failed")
        return drain["reason"], drain["message"]


def test_a_query_that_was_started_again_on_another_checkpoint_is_drained(warm: Warm, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "input")
    feed.add(2)
    fail(warm, tmp_path, "orders")
    start(warm, tmp_path, "orders").processAllAvailable()
    assert [query["name"] for query in warm.drain()["queries"]] == ["orders"]
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def test_a_failure_matters_where_the_query_is_asked_for(warm: Warm, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "input")
    feed.add(2)
    fail(warm, tmp_path, "broken")
    start(warm, tmp_path, "orders").processAllAvailable()
    for options in ({}, {"queries": "broken", **KEEP}, {"queries": "orders,broken", **KEEP}):
        reason, message = failed(warm, **options)
        assert reason == "QueryFailed"
        assert message.startswith(f"query 'broken' has failed: ArithmeticError ({__file__}, line "), message
        assert ", in break_at_once): batch 0 is broken; in full: " in message
        assert message.endswith("start it again before the drain, or drain the others by name, with `queries` and afterDrain 'Keep'")
    drain = warm.drain(queries="orders", **KEEP)
    assert [query["name"] for query in drain["queries"]] == ["orders"]
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


@pytest.mark.parametrize("what", ["started again", "acknowledged"])
def test_a_query_without_name_and_checkpoint_that_failed_fails_no_drain(warm: Warm, tmp_path: Path, what: str) -> None:
    """It keeps nothing that could be drained, once the application has started it again or asked to be told no more of it."""
    broken = tmp_path / "broken"
    feed = Feed(tmp_path / "input")
    feed.add(2)
    broken.touch()

    def show(batch: DataFrame, batch_id: int) -> None:
        if broken.exists():
            break_at_once(batch, batch_id)

    dashboard = read(warm.session, tmp_path).writeStream.foreachBatch(show)
    query = dashboard.start()
    eventually(lambda: not query.isActive and query.exception() is not None, "the query to fail")
    start(warm, tmp_path, "orders").processAllAvailable()
    assert failed(warm)[0] == "QueryFailed"
    if what == "acknowledged":
        warm.session.streams.resetTerminated()
    else:
        broken.unlink()
        dashboard.trigger(availableNow=True).start().awaitTermination()
    assert [query["name"] for query in warm.drain()["queries"]] == ["orders"]
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def test_runs_of_a_bounded_query_are_one_target(warm: Warm, tmp_path: Path) -> None:
    """A job that runs for what is available, again and again, sometimes on a new checkpoint: only its newest run is drained."""
    feed = Feed(tmp_path / "input")
    for number in range(4):
        feed.add()
        start(warm, tmp_path, "daily", checkpoint=f"checkpoint-{number // 2}", available=True).awaitTermination()
    assert len(warm.agent.registry.all()) == 1
    drain = warm.drain()
    assert [query["checkpointLocation"].rsplit("/", 1)[-1] for query in drain["queries"]] == ["checkpoint-1"]


@pytest.mark.parametrize("new", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_a_checkpoint_with_which_another_driver_has_gone_on_is_left_to_that(warm: Warm, tmp_path: Path, *, new: bool) -> None:
    """As after a backfill, whose driver goes on with something else: what is open there is the other one's, which may be running."""
    feed, checkpoint = Feed(tmp_path / "input"), tmp_path / "checkpoint"
    feed.add(2)
    windows = counted(read(warm.session, tmp_path)).writeStream.queryName("windows").option("checkpointLocation", str(checkpoint))
    writer = windows.trigger(availableNow=True).foreachBatch(to_files(tmp_path / "out"))
    writer.start().awaitTermination()
    if not new:
        writer.start().awaitTermination()  # which finds nothing to do
    with as_agent():  # out of this agent's sight, as another driver does it
        feed.add()
        writer.start().awaitTermination()
    before = files_below(checkpoint)
    start(warm, tmp_path, "orders").processAllAvailable()
    drain = warm.drain()
    assert [query["name"] for query in drain["queries"]] == ["orders"]
    assert drain["message"] == "1 query drained; another run has gone on with the checkpoint of query 'windows', and has what is open there"
    assert files_below(checkpoint) == before
    writer.start().awaitTermination()
    for _ in range(2):  # it is not taken for another run that this one has drained it
        assert [query["name"] for query in warm.drain(afterDrain="Keep")["queries"]] == ["windows"]


def test_a_run_that_was_ended_before_it_began_tells_nothing_of_the_checkpoint(warm: Warm, tmp_path: Path) -> None:
    """Spark stops one for another start, and may refuse that one too (CONCURRENT_QUERY): what is open is still this driver's."""
    feed, starting = Feed(tmp_path / "input"), threading.Event()
    feed.add(2)
    windows = counted(read(warm.session, tmp_path)).writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer = windows.trigger(availableNow=True).foreachBatch(to_files(tmp_path / "out"))
    writer.start().awaitTermination()

    def wait(_: str | None) -> None:
        starting.set()
        time.sleep(2)

    with listening(warm.session, wait):
        late = Started(writer.start)
        assert starting.wait(30)
        with as_agent():  # as Spark does it
            warm.session.streams.active[0].stop()
        assert not late.result().isActive
    drain = warm.drain()
    assert drain["message"] == "1 query drained"
    assert ids_in(tmp_path / "out") == exactly(feed.ids)


def files_below(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_flush_that_failed_once_and_was_made_good_is_no_failure_to_a_later_drain(warm: Warm, tmp_path: Path) -> None:
    tries: list[int] = []

    def broken_once(batch: DataFrame, batch_id: int) -> None:
        batch.collect()
        if is_drain_pane():
            tries.append(batch_id)
            if len(tries) == 1:
                raise OSError("one of two outputs is away")

    Feed(tmp_path / "input").add(2)
    windows = read(warm.session, tmp_path).withWatermark("at", "10 seconds").groupBy(F.window("at", "1 hour")).count()
    writer = windows.writeStream.queryName("windows").option("checkpointLocation", str(tmp_path / "windows")).foreachBatch(broken_once)
    writer.start().processAllAvailable()
    assert [query["name"] for query in warm.drain()["queries"]] == ["windows"]
    assert len(tries) > 1
    start(warm, tmp_path, "orders").processAllAvailable()
    assert [query["name"] for query in warm.drain()["queries"]] == ["orders"]


@pytest.mark.parametrize(
    ("kind", "state", "reason"),
    [
        ("Drain", "Stopping", "BatchRunning"),
        ("bounded", "Stopping", "BatchRunning"),
        pytest.param("CatchUp", "Acknowledged", "CatchingUp", marks=pytest.mark.soak),
    ],
)
def test_a_query_that_fails_while_it_is_drained_is_named(warm: Warm, tmp_path: Path, kind: str, state: str, reason: str) -> None:
    free = threading.Event()

    def break_when_told(batch: DataFrame, batch_id: int) -> None:
        assert free.wait(60)
        raise ArithmeticError(f"batch {batch_id} is broken")

    feed = Feed(tmp_path / "input")
    feed.add(2)
    start(warm, tmp_path, "orders").processAllAvailable()
    writer = read(warm.session, tmp_path).writeStream.queryName("broken").option("checkpointLocation", str(tmp_path / "broken"))
    (writer.trigger(availableNow=True) if kind == "bounded" else writer).foreachBatch(break_when_told).start()
    with warm.requested("CatchUp" if kind == "CatchUp" else "Drain") as asked:
        warm.drains.reaches(asked, state, reason=reason)
        free.set()
        drain = warm.drains.reaches(asked, "Failed")
    assert drain["reason"] == "QueryFailed"
    assert drain["message"].startswith(f"query 'broken' ended while it was being drained: ArithmeticError ({__file__}, line "), drain


def test_a_query_that_fails_while_another_ones_batch_is_waited_for_ends_the_drain(warm: Warm, tmp_path: Path) -> None:
    """The drain asks for no more of the other one: it reads on while its batch still runs."""
    free, bases = threading.Event(), {name: tmp_path / name for name in ("running", "broken")}
    for base in bases.values():
        base.mkdir()
    feeds = {name: Feed(base / "input") for name, base in bases.items()}
    for feed in feeds.values():
        feed.add(2)

    def break_when_told(batch: DataFrame, batch_id: int) -> None:
        assert free.wait(60)
        raise ArithmeticError(f"batch {batch_id} is broken")

    block = bases["running"] / "block"
    block.touch()
    for name, function in (("running", to_files(bases["running"] / "out", block=block)), ("broken", break_when_told)):
        writer = counted(read(warm.session, bases[name])).writeStream.queryName(name)
        writer.option("checkpointLocation", str(bases[name] / "checkpoint")).foreachBatch(function).start()
    eventually((bases["running"] / "blocked").exists, "a batch to run")
    with warm.requested() as asked:
        waits = "waits for batch 0 of query 'running', batch 0 of query 'broken'"
        eventually(lambda: warm.drains.show(asked)["message"] == waits, "both to be waited for")
        free.set()
        drain = warm.drains.reaches(asked, "Failed")
    assert drain["reason"] == "QueryFailed"
    assert drain["message"].startswith(f"query 'broken' ended while it was being drained: ArithmeticError ({__file__}, line "), drain
    assert {query["name"]: query["state"] for query in drain["queries"]} == {"running": "Running", "broken": "Failed"}
    block.unlink()
    eventually(lambda: newest(bases["running"] / "checkpoint", "commits") == 0, "its batch to be committed")
    feeds["running"].add(1)
    eventually(lambda: newest(bases["running"] / "checkpoint", "commits") > 0, "it to read on")


def test_a_withdrawn_drain_reports_what_became_of_each_query_meanwhile(warm: Warm, tmp_path: Path) -> None:
    """Approval may take days."""
    broken = tmp_path / "broken"

    def break_when_told(batch: DataFrame, batch_id: int) -> None:
        if broken.exists():
            break_at_once(batch, batch_id)

    feed = Feed(tmp_path / "input")
    feed.add(1)
    queries = {name: start(warm, tmp_path, name) for name in ("orders", "stopped", "again")}
    writer = read(warm.session, tmp_path).writeStream.queryName("failed").option("checkpointLocation", str(tmp_path / "failed"))
    queries["failed"] = writer.foreachBatch(break_when_told).start()
    for name, function in (("", to_files(tmp_path / "unnamed")), ("unnamed and failed", break_when_told)):
        queries[name] = read(warm.session, tmp_path).select("id").writeStream.foreachBatch(function).start()
    for query in queries.values():
        query.processAllAvailable()
    with warm.requested(execution="AfterApproval", checkpoint__policy="Keep") as asked:
        warm.drains.reaches(asked, "Acknowledged", reason="AwaitingApproval")
        broken.touch()
        feed.add(1)
        for name in ("failed", "unnamed and failed"):
            eventually(lambda name=name: queries[name].exception() is not None, "it to fail")  # type: ignore[misc]
        for name in ("stopped", "again"):
            queries[name].stop()
        start(warm, tmp_path, "again").processAllAvailable()
        warm.drains.withdraw(asked)
        drain = warm.drains.reaches(asked, "Withdrawn")
    states = sorted((query["name"], query["state"]) for query in drain["queries"])
    unnamed = [("", "Failed"), ("", "Running")]
    assert states == [*unnamed, ("again", "Running"), ("failed", "Failed"), ("orders", "Running"), ("stopped", "Ended")]
