"""A drain of a version that has run no batch since the drain before: there is nothing to flush, and the rest is as it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.checkpoint import complete
from spark_drain_agent.checkpoint.files import CheckpointFiles, CheckpointIOError
from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.checkpoint.restore import restore
from spark_drain_agent.drain import after_commit
from spark_drain_agent.planning.output_paths import ALLOWED_PATHS
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import DrainState, QueryReport

from tests.semantics.operator_table import EVENTS
from tests.semantics.warm import Application, Batches, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[[], Application]


class Versions:
    """Versions of an application, each incompatible with the others."""

    def __init__(self, application: Begin, spark: SparkSession, folder: Path) -> None:
        self.events, self.sink, self._begin = Input(spark, folder / "events"), Batches(), application
        self.checkpoint = folder / "checkpoints/q"
        self.events.add(EVENTS[:12])

    def windows(self, version: int) -> DataFrame:
        """Return what a version makes of the events; from the third one on it has one operator more."""
        events = self.events.stream()
        events = events if version < 3 else events.dropDuplicates(["id", "at"])
        windows = events.groupBy(F.window("at", f"{10 + version} seconds"))
        return windows.agg(F.collect_list("id").alias("ids")).select("ids")

    def start(self, app: Application, version: int) -> StreamingQuery:
        """Start a version, and let it read what there is."""
        query = app.start(self.windows(version), self.sink)
        read_all(query)
        return query

    def drained(self, version: int, **options: str) -> QueryReport:
        """Start a version and drain it."""
        app = self._begin()
        self.start(app, version)
        report = app.drain(**options)
        app.close()
        return report


@pytest.fixture
def versions(application: Begin, spark: SparkSession, tmp_path: Path) -> Versions:
    """Return those of which the first one was drained."""
    made = Versions(application, spark, tmp_path)
    made.drained(1)
    return made


def test_with_the_same_policy_nothing_is_done(versions: Versions) -> None:
    report = versions.drained(2)
    assert report.message.startswith("no batch was run since drain ")
    assert report.message.endswith(": there is nothing to drain")
    versions.events.add(EVENTS[12:])
    versions.drained(3, stateLossPolicy="Accept")
    assert versions.sink.ids == Counter(event.id for event in EVENTS)


@pytest.fixture
def export_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let drains write below the test's folder."""
    conf = SparkInternals.conf

    def of_application(internals: SparkInternals, name: str, default: str = "") -> str:
        return tmp_path.as_uri() if name == ALLOWED_PATHS else conf(internals, name, default)

    monkeypatch.setattr(SparkInternals, "conf", of_application)


@pytest.mark.usefixtures("export_allowed")
def test_where_the_state_is_kept_there_is_none_to_export(versions: Versions, tmp_path: Path) -> None:
    report = versions.drained(2, mode="Stop", stateExport__path=f"{tmp_path}/exported")
    assert (report.state_export, (tmp_path / "exported").exists()) == ("", False)


@pytest.mark.usefixtures("export_allowed")
def test_with_policy_keep_no_start_goes_on_from_there(versions: Versions, application: Begin, tmp_path: Path) -> None:
    """Nothing is exported either: there is no state but what the agent has made."""
    report = versions.drained(2, checkpoint__policy="Keep", stateExport__path=f"{tmp_path}/exported")
    assert (report.checkpoint_policy, report.message, report.state_export) == ("Keep", "", "")
    assert "CHECKPOINT_POLICY_KEEP" in (versions.checkpoint / "metadata").read_text()
    app = application()
    with pytest.raises(Exception, match="CHECKPOINT_POLICY_KEEP"):
        versions.start(app, 2)
    assert versions.sink.ids == Counter(event.id for event in EVENTS[:12])


def test_batch_ids_start_again_where_that_is_asked_for_then(versions: Versions) -> None:
    report = versions.drained(2, checkpoint__policy="Reseed", checkpoint__acceptBatchIdRestart="true")
    assert any("its batch ids start again at 0" in warning for warning in report.warnings)
    versions.events.add(EVENTS[12:])
    versions.drained(3, stateLossPolicy="Accept")
    assert versions.sink.ids == Counter(event.id for event in EVENTS)
    assert (versions.checkpoint / "_drain" / report.archive.rpartition("/")[2] / "offsets").is_dir()


@pytest.mark.parametrize("interrupted_in", ["set_fence", pytest.param("_flush", marks=pytest.mark.soak)])
def test_where_that_drain_is_undone_another_version_can_still_begin(
    versions: Versions, application: Begin, monkeypatch: pytest.MonkeyPatch, interrupted_in: str
) -> None:
    """The drain before has left no state, whose place the agent takes at the first start."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise CheckpointIOError("the store is away")

    monkeypatch.setattr(after_commit, "_RETRY_SECONDS", (0.2,))
    app = application()
    versions.start(app, 2)
    with monkeypatch.context() as patch, app.user_waits():
        patch.setattr(complete, interrupted_in, interrupted)
        app.answer(app.ask(checkpoint__policy="Keep"), DrainState.STALLED)
        app.close()
    versions.events.add(EVENTS[12:])
    versions.drained(3, stateLossPolicy="Accept")
    assert versions.sink.ids == Counter(event.id for event in EVENTS)


def test_where_that_drain_is_taken_back_another_version_can_still_begin(versions: Versions, spark: SparkSession) -> None:
    versions.drained(2, checkpoint__policy="Reseed", checkpoint__acceptBatchIdRestart="true")
    files = CheckpointFiles(SparkInternals(spark), versions.checkpoint.as_uri())
    journal = read_journal(files)
    assert journal is not None
    restore(files, journal)
    versions.events.add(EVENTS[12:])
    versions.drained(3, stateLossPolicy="Accept")
    assert versions.sink.ids == Counter(event.id for event in EVENTS)
