"""The three ways in which an application starts again after its driver was killed, and what must be true then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from spark_drain_agent.checkpoint.archive import damage_of_archive
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.checkpoint.state_files import needed_state
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import DrainState

from tests.s3.moments import Left, files_below
from tests.s3.table import ALL, READ, counted
from tests.semantics.warm import Application, read_all, until

__all__ = ["WAYS", "Way"]

Way = Callable[[Left, SparkSession], None]
_FENCE = "FENCED_BY_SPARK_DRAIN"
_MISSING = "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY"
_CLOSED = "RejectedExecutionException"
"""Spark keeps a stream of ``metadata`` and not the file context it is from, whose finalizer closes the connector's client."""


@contextmanager
def _application(left: Left, spark: SparkSession, *, requested: bool = False) -> Iterator[Application]:
    app = Application(spark, left.uri, left.channel(requested=requested))
    try:
        yield app
    finally:
        app.close()


def requested(left: Left, spark: SparkSession) -> None:
    """Under the agent, with the request there: the drain is finished, and the next version reads on."""
    drain_id = left.recording.drain_id
    with _application(left, spark, requested=True) as app:

        def drained_by_this_run() -> bool:
            report = app.answer(drain_id, *(state for state in DrainState if not state.finished), DrainState.DRAINED)
            return report.state is DrainState.DRAINED and report.runs[-1] == app.run_id

        app.start(counted(left.recording.events, "key"), left.table)
        with app.user_waits():
            until(drained_by_this_run, "the drain to be finished")
        app.finish(drain_id)
    assert left.table.ids == READ
    assert left.table.flushed
    _check_archive(left, spark)
    _read_on(left, spark, *(["key"] if left.recording.setting.policy == "Continue" else []))


def removed(left: Left, spark: SparkSession) -> None:
    """Under the agent, without the request: the drain is undone, or finished, and the version that was drained reads on."""
    _read_on(left, spark, "key")


def plain(left: Left, spark: SparkSession) -> None:
    """By Spark that knows nothing of the drain: exact, or refused; where that changes anything, the agent puts it right."""
    checkpoint, before = left.objects / "q", files_below(left.objects)
    refused = _FENCE in (checkpoint / "metadata").read_text() or not (checkpoint / "state").exists()
    writer = counted(left.recording.events, "key").writeStream.foreachBatch(left.table).option("checkpointLocation", f"{left.uri}/q")

    def read() -> None:
        query = writer.start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    refusal = _refusal(read)
    if not refused:
        assert refusal == "", refusal
        assert left.table.ids == ALL
        return
    assert _FENCE in refusal or _MISSING in refusal, refusal
    if files_below(left.objects) != before:
        removed(left, spark)


WAYS: dict[str, Way] = {"requested": requested, "removed": removed, "plain": plain}


def _read_on(left: Left, spark: SparkSession, *keys: str) -> None:
    """Read the rest, which closes all windows: each event is counted once, or nothing was read since the fence stays, as was asked for."""
    with _application(left, spark) as app:
        refusal = _refusal(lambda: read_all(app.start(counted(left.recording.events, *keys), left.table)))
    if left.recording.setting.policy == "Keep" and _FENCE in refusal:
        assert left.table.ids == READ
    else:
        assert refusal == "", refusal
        assert left.table.ids == ALL


def _refusal(read: Callable[[], None]) -> str:
    """Return why Spark refuses a start or its first batch, or ""; one that Hadoop's finalizer spoils is begun again."""
    for _ in range(3):
        refusal = ""
        try:
            read()
        except JavaError as error:
            refusal = str(error)
        if _CLOSED not in refusal:
            break
    return refusal


def _check_archive(left: Left, spark: SparkSession) -> None:
    """All of which the newest state is made is in the archive, as it was; with another policy nothing is archived."""
    files, state = _files(left, spark), left.recording.state
    journal = read_journal(files)
    assert journal is not None
    assert journal.drain_id == left.recording.drain_id
    if left.recording.setting.policy != "Reseed":
        return
    assert damage_of_archive(files, journal) == []
    needed = needed_state(state, journal.batch_id + 1)
    assert needed
    archived = files_below(left.objects / "q" / journal.work / "state")
    assert {name: archived.get(name) for name in needed} == {name: state[name] for name in needed}


def _files(left: Left, spark: SparkSession) -> CheckpointFiles:
    return CheckpointFiles(SparkInternals(spark), f"{left.uri}/q")
