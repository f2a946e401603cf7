"""An application may have thousands of queries behind it that still matter: they are not asked again how they have ended."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.queries.ended_query import EndedQuery
from spark_drain_agent.queries.standing import Standing
from spark_drain_agent.spark_internals.live_query import LiveQuery

from tests.agent.asked import Asked
from tests.agent.driver.streams import in_thread
from tests.agent.warm import Warm
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark


def test_an_ended_query_is_asked_once_how_it_has_ended(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warm.session.range(3).write.parquet(f"{tmp_path}/input")
    for number in range(3):
        read = warm.session.readStream.schema("id long").parquet(f"{tmp_path}/input").groupBy("id").count()
        writer = read.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{tmp_path}/{number}").start().awaitTermination()
    registry = warm.agent.registry
    registry.prune()
    queries = registry.all()
    known = [(query.standing(), query.query_id, query.run_id) for query in queries]
    assert [standing for standing, _, _ in known] == [Standing.FINISHED] * 3
    asked = Asked(monkeypatch)
    assert [(query.standing(), query.query_id, query.run_id) for query in queries] == known
    assert asked.count() == 0


def test_a_query_whose_thread_has_not_begun_has_not_ended_for_good(warm: Warm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark lists a query a moment before it starts its thread."""
    read = warm.session.readStream.format("rate").load()
    read.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    (query,) = warm.agent.registry.all()
    with monkeypatch.context() as patch:
        patch.setattr(LiveQuery, "thread_alive", property(lambda _: False))
        assert query.standing() is Standing.STOPPED
    assert query.standing() is Standing.RUNS


def test_a_signal_handler_looks_while_its_thread_does(warm: Warm) -> None:
    registry = warm.agent.registry

    def look() -> int:
        with registry._lock:
            return len(registry.all())

    assert in_thread(look) == 0


def weak(warm: Warm, jvm_object: Any) -> Any:
    """Return a reference that keeps nothing in the JVM."""
    jvm: Any = warm.session.sparkContext._jvm
    return jvm.java.lang.ref.WeakReference(jvm_object)


def forgotten_by_spark(warm: Warm, reference: Any) -> None:
    """Wait until nothing keeps what it refers to."""
    jvm: Any = warm.session.sparkContext._jvm

    def look() -> bool:
        gc.collect()
        jvm.java.lang.System.gc()
        return reference.get() is None

    eventually(look, what="Spark to forget it")


def test_an_end_that_is_acknowledged_while_little_of_it_is_kept_stays_acknowledged(warm: Warm, tmp_path: Path) -> None:
    query = warm.session.readStream.format("rate").load().writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    (tracked,) = warm.agent.registry.all()
    query.stop()
    left = tracked.left(warm.agent.internals, with_digest=False)
    warm.agent.held.forget_ended(warm.session.streams)
    assert left.forgotten


def test_what_the_application_has_stopped_is_named_and_not_kept(warm: Warm, tmp_path: Path) -> None:
    """Its plan may hold tables: without the agent Spark forgets it."""

    def begun_and_stopped() -> tuple[str, Any]:
        query = warm.session.readStream.format("rate").load().writeStream.format("noop").queryName("over")
        started = query.option("checkpointLocation", str(tmp_path)).start()
        started.stop()
        return str(started.runId), weak(warm, started._jsq.streamingQuery())

    run_id, execution = begun_and_stopped()
    forgotten_by_spark(warm, execution)
    (left,) = warm.agent.registry.all()
    assert (left.label, left.run_id, left.standing(), left.ended) == ("query 'over'", run_id, Standing.STOPPED, True)
    assert left.query is not None
    assert (left.query.isActive, left.query.awaitTermination(1), left.query.exception()) == (False, True, None)
    with pytest.raises(ValueError, match="not started again"):
        left.captured.launch(None)


@pytest.mark.parametrize(
    ("options", "state"),
    [
        pytest.param({"execution": "PlanOnly"}, "Acknowledged", id="a plan", marks=pytest.mark.soak),
        pytest.param({"execution": "AfterApproval"}, "Acknowledged", id="approval"),
        pytest.param({"queries": "drained", "afterDrain": "Keep"}, "Drained", id="cleanup", marks=pytest.mark.soak),
    ],
)
def test_what_is_stopped_is_not_kept_while_a_drain_waits(warm: Warm, tmp_path: Path, options: dict[str, str], state: str) -> None:
    """It may wait for days (seen: OutOfMemoryError after 60 queries, with 8 MB of data each)."""

    def begun(name: str) -> StreamingQuery:
        query = warm.session.readStream.format("rate").load().writeStream.format("noop").queryName(name)
        return query.option("checkpointLocation", str(tmp_path / name)).start()

    def begun_and_stopped() -> Any:
        started = begun("over")
        started.stop()
        return weak(warm, started._jsq.streamingQuery())

    begun("drained").processAllAvailable()
    with warm.requested(**options) as asked:
        eventually(lambda: warm.drains.show(asked)["state"] == state and warm.drains.show(asked)["queries"], what="the drain to wait")
        forgotten_by_spark(warm, begun_and_stopped())


def failing(warm: Warm) -> DataFrame:
    """Return a stream that fails in its first batch."""
    return warm.session.readStream.format("rate").load().select(F.raise_error(F.lit("no such tenant")).alias("tenant"))


def test_what_has_failed_is_told_and_not_kept(warm: Warm) -> None:
    """An application may start query after query, each under a name of its own, and put up with those that fail."""

    def begun_and_failed() -> Any:
        started = failing(warm).writeStream.format("noop").queryName("unlucky").start()
        with pytest.raises(StreamingQueryException, match="no such tenant"):
            started.awaitTermination(60)
        return weak(warm, started._jsq.streamingQuery())

    execution = begun_and_failed()
    warm.session.readStream.format("rate").load().writeStream.format("noop").queryName("other").start()
    forgotten_by_spark(warm, execution)
    left = warm.agent.registry.all()[0]
    assert (left.label, left.standing()) == ("query 'unlucky'", Standing.FAILED)
    assert left.query is not None
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match="no such tenant"):
            left.query.awaitTermination(1)
    with warm.requested() as drain_id:
        message = warm.drains.reaches(drain_id, "Failed")["message"]
    assert message.startswith("query 'unlucky' has failed: ")
    assert "no such tenant" in message


def test_what_a_failure_went_through_is_not_kept() -> None:
    """PySpark meets an exception of foreachBatch once more while it makes the query's of it: its frames have the query."""

    def of_frames(text: str) -> ValueError:
        try:
            raise ValueError(text)
        except ValueError as error:
            return error

    failure: Any = StreamingQueryException("failed")
    failure._cause, failure.__cause__, failure.__context__ = of_frames("a"), of_frames("b"), of_frames("c")
    query = EndedQuery("id", "run", failure)
    assert [error.__traceback__ for error in (failure._cause, failure.__cause__, failure.__context__)] == [None] * 3
    for _ in range(2):
        with pytest.raises(StreamingQueryException) as told:
            query.awaitTermination()
        assert len(told.traceback) == 2


@pytest.mark.parametrize("name", ["", "same"])
def test_a_session_whose_queries_have_ended_is_not_kept(warm: Warm, name: str) -> None:
    """One with a session for each of its tenants may make thousands."""

    def session_of_one_query() -> tuple[Any, int]:
        session = warm.session.newSession()
        query = session.readStream.format("rate").load().writeStream.format("noop").queryName(name or str(uuid4())).start()
        query.stop()
        return weak(warm, session._jsparkSession), warm.agent.internals.manager_id(session.streams)

    found = [session_of_one_query() for _ in range(6)]
    warm.session.readStream.format("rate").load().writeStream.format("noop").queryName(name or "last").start()
    for session, _ in found[:-1]:  # Spark itself keeps the last one
        forgotten_by_spark(warm, session)
    left = [*warm.agent.registry.last_ended(), *(query for query in warm.agent.registry.all() if query.ended)]
    assert [query.manager for query in left] == [manager for _, manager in found]
    assert not any(query.belongs_to(warm.session.streams) for query in left)


def test_a_failure_beside_what_was_stopped_puts_no_plan_in_doubt(warm: Warm, caplog: pytest.LogCaptureFixture) -> None:
    """Of queries that have neither name nor checkpoint, the plan tells whether a failed one was started again."""
    read = warm.session.readStream.format("rate").load()
    read.writeStream.format("noop").start().stop()
    for _ in range(2):
        failed = failing(warm).writeStream.format("noop").start()
        with pytest.raises(StreamingQueryException):
            failed.awaitTermination(60)
    read.select("value").writeStream.format("noop").start().stop()
    assert [query.standing() for query in warm.agent.registry.all()] == [Standing.STOPPED, Standing.FAILED, Standing.STOPPED]
    assert not [record.getMessage() for record in caplog.records if record.name == "spark_drain"]
