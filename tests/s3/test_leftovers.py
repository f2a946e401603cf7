"""What a crash has left in a bucket is found and removed by a later drain."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from spark_drain_agent.checkpoint.files import CheckpointFiles, nothing
from spark_drain_agent.checkpoint.journal import JournalStep, read_journal
from spark_drain_agent.checkpoint.restore import check_restorable, restore
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.agent.folder import KilledError
from tests.s3.moments import Left, Recording, Setting, left_behind
from tests.s3.table import DRAINED, Table, counted
from tests.semantics.warm import Application, read_all
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]

Recorded = Callable[[Setting], Recording]

_PARTS = [pytest.param(part, marks=[] if part == 3 else pytest.mark.soak) for part in range(6)]

_CHANGES = 5


@pytest.mark.parametrize("part", _PARTS)
def test_after_a_crash(part: int, recorded: Recorded, s3: S3Server, spark: SparkSession) -> None:
    """Of a drain that is undone or finished on the next start: at six moments of it."""
    recording = recorded(Setting("WorkCopy", "Reseed"))
    moment = recording.moments[part * len(recording.moments) // len(_PARTS)]
    left = left_behind(recording, moment, s3, spark)
    _read_on_and_drain(left, left.table, spark)
    assert left.table.ids == DRAINED


def test_after_an_archive_was_put_back_and_that_was_interrupted(recorded: Recorded, s3: S3Server, spark: SparkSession) -> None:
    recording = recorded(Setting("WorkCopy", "Reseed"))
    left = left_behind(recording, recording.moments[-1], s3, spark)
    files = CheckpointFiles(SparkInternals(spark), f"{left.uri}/q")
    changes = iter(range(_CHANGES))

    def killed() -> None:
        if next(changes, None) is None:
            raise KilledError

    files.check_before_change = killed
    with pytest.raises(KilledError):
        _put_back(files)
    files.check_before_change = nothing
    begun = read_journal(files)
    assert begun is not None
    assert begun.being_undone
    _put_back(files)
    assert [name for name in files.names("_drain") if name.endswith("-superseded")]
    _read_on_and_drain(left, Table(), spark)


def _put_back(files: CheckpointFiles) -> None:
    restored = restore(files, check_restorable(files, read_journal(files), discard_newer=False, accept_reuse=True))
    assert restored.step is JournalStep.UNDONE


def _read_on_and_drain(left: Left, table: Table, spark: SparkSession) -> None:
    app = Application(spark, left.uri, left.channel(requested=False))
    try:
        read_all(app.start(counted(left.recording.events, "key"), table))
        app.drain(checkpoint__retainArchives="1")
    finally:
        app.close()
    journal = read_journal(CheckpointFiles(SparkInternals(spark), f"{left.uri}/q"))
    assert journal is not None
    assert {path.name for path in (left.objects / "q/_drain").iterdir()} == {"journal", journal.drain_id}
    assert {path.name for path in (left.objects / "q").iterdir()} == {"_drain", "commits", "metadata", "offsets", "sources"}
