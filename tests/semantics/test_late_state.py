"""State that a store's maintenance thread uploads late, beside and after a drain, is not read by the next generation."""

from __future__ import annotations

import shutil
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.checkpoint.restore import RestoreError, check_restorable, restore
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.semantics.operator_table import EVENTS
from tests.semantics.warm import PROVIDERS, Application, Batches, Input, read_all
from tests.support.own_jvm import session_confs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

_SLOW_SECONDS = 10
_STORE = "spark.sql.streaming.stateStore"
_RESTLESS = {
    f"{_STORE}.providerClass": PROVIDERS["rocksdb"],
    f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STORE}.minDeltasForSnapshot": "1",
}
_IDLE_SECONDS = 2.0
"""Until stores of queries that have ended are unloaded: `StateStore.stop` waits for a maintenance thread that may wait for its lock."""


_OTHERS_WITH_ONE_VERSION = (("Auto", "false"), ("WorkCopy", "true"), ("WorkCopy", "false"))


def unload(spark: SparkSession) -> None:
    """Forget every store and end the maintenance thread, which keeps the interval that it was started with."""
    jvm: Any = spark.sparkContext._jvm
    jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()


@contextmanager
def maintained(spark: SparkSession, interval: str, **confs: str) -> Iterator[None]:
    """Let the maintenance thread make a snapshot of what changed since the last one, and upload it, so often."""
    with session_confs(spark, {**_RESTLESS, f"{_STORE}.maintenanceInterval": interval, **confs}):
        unload(spark)
        yield
        time.sleep(_IDLE_SECONDS)
        unload(spark)


@pytest.fixture
def restless(spark: SparkSession) -> Iterator[None]:
    with maintained(spark, "100ms"):
        yield


@pytest.mark.parametrize("flush", ["Auto", pytest.param("WorkCopy", marks=pytest.mark.soak)])
def test_snapshots_beside_a_drain(
    flush: str, restless: None, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """Four incompatible generations; before each but the first, all old state comes back to where state is looked for."""
    spark.conf.set(FLUSH_CONF, flush)
    events, sink, state = Input(spark, tmp_path / "events"), Batches(), tmp_path / "checkpoints/q/state"
    snapshots = 0
    for generation, keys in enumerate((["key"], [], ["id", "key"], ["key"])):
        events.add(*(EVENTS[first : first + 2] for first in range(6 * generation, 6 * generation + 6, 2)))
        app = application()
        windows = events.stream().groupBy(F.window("at", "10 seconds"), *keys).agg(F.collect_list("id").alias("ids"), F.count("*"))
        read_all(app.start(windows.select("ids"), sink))
        archive = Path(app.drain().archive.removeprefix("file:"))
        app.close()
        snapshots += len(list(archive.glob("state/**/*.zip")))
        shutil.copytree(archive / "state", state, ignore=shutil.ignore_patterns("*.tmp", "*.tmp.crc"), dirs_exist_ok=True)
    assert snapshots > 0, "the maintenance thread never had anything to do"
    assert sink.ids == Counter(event.id for event in EVENTS)


@pytest.mark.soak
def test_a_snapshot_of_a_drained_query_while_the_next_version_runs_in_the_same_driver(
    application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """It has the name of the next version's empty state: read after a restart, it would bring back what was drained."""
    events, sink = Input(spark, tmp_path / "events"), Batches()
    confs = {f"{_STORE}.minDeltasForSnapshot": "3", "spark.sql.streaming.noDataMicroBatches.enabled": "false"}
    with maintained(spark, f"{_SLOW_SECONDS}s", **confs):
        for first, last in ((0, 3), (3, 5), (5, 6)):  # a snapshot is due after the third file, and not before the sixth
            events.add(*(EVENTS[2 * number : 2 * number + 2] for number in range(first, last)))
            app = application()
            windows = events.stream().groupBy(F.window("at", "1 hour"), "id").agg(F.collect_list("id").alias("ids"))
            query = app.start(windows.select("ids"), sink)
            read_all(query)
            if first == 3:
                time.sleep(_SLOW_SECONDS + 1)
                query.stop()
                unload(spark)  # as with a driver that was killed
            else:
                app.drain(incompleteWindows__policy="Emit" if first else "Discard")
            app.close()
    assert sink.ids == Counter(event.id for event in EVENTS[6:12])


@pytest.mark.parametrize(
    ("flush", "changelogs"), [("Auto", "true"), *(pytest.param(*each, marks=pytest.mark.soak) for each in _OTHERS_WITH_ONE_VERSION)]
)
def test_an_archive_is_whole_where_spark_retains_one_version(
    flush: str, changelogs: str, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """The flush makes a newer version of the state than the one to go back to."""
    confs = {"spark.sql.streaming.minBatchesToRetain": "1", f"{_STORE}.rocksdb.changelogCheckpointing.enabled": changelogs}
    spark.conf.set(FLUSH_CONF, flush)
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(*(EVENTS[first : first + 2] for first in range(0, 12, 2)))
    windows = events.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids")
    with maintained(spark, "50ms", **confs):
        app = application()
        read_all(app.start(windows, sink))
        app.drain()
        app.close()
        time.sleep(1)
    files = CheckpointFiles(SparkInternals(spark), f"file:{tmp_path}/checkpoints/q")
    restore(files, check_restorable(files, read_journal(files), discard_newer=False, accept_reuse=True))
    events.add(EVENTS[12:])
    with maintained(spark, "10s", **confs):
        app = application()
        read_all(app.start(windows, sink))
        app.close()


def test_an_archive_without_a_table_of_its_state_is_damaged(
    application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """Which tables the state is made of, the snapshots say that Spark has written; any other may go. What the flush emitted comes twice."""
    events, sink = Input(spark, tmp_path / "events"), Batches()
    events.add(*(EVENTS[first : first + 2] for first in range(0, 12, 2)))
    windows = events.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids")
    files = CheckpointFiles(SparkInternals(spark), f"file:{tmp_path}/checkpoints/q")
    confs = {f"{_STORE}.providerClass": PROVIDERS["rocksdb"], f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "false"}
    with session_confs(spark, confs):
        app = application()
        read_all(app.start(windows, sink))
        app.drain()
        app.close()
        pane = Batches([written for written in sink.written if written[0]]).ids
        journal = read_journal(files)
        assert journal is not None
        archive = tmp_path / "checkpoints/q" / journal.work
        newest = [archive / "state/0" / partition.name / f"{journal.batch_id + 1}.zip" for partition in archive.glob("state/0/[0-9]*")]
        texts = "".join(zipfile.ZipFile(snapshot).read("metadata").decode() for snapshot in newest)
        tables = list(archive.glob("state/0/*/SSTs/*.sst"))
        of_the_state = [table for table in tables if table.name in texts]
        assert 0 < len(of_the_state) < len(tables)
        for table in set(tables) - set(of_the_state):
            table.unlink()
        kept = of_the_state[0].rename(tmp_path / "kept")
        with pytest.raises(RestoreError, match=f"1 of its files .*{of_the_state[0].name}"):
            check_restorable(files, journal, discard_newer=False, accept_reuse=True)
        kept.rename(of_the_state[0])
        restore(files, check_restorable(files, journal, discard_newer=False, accept_reuse=True))
        events.add(EVENTS[12:])
        app = application()
        read_all(app.start(windows, sink))
        app.drain()
        app.close()
    assert sink.ids == Counter(event.id for event in EVENTS) + pane
