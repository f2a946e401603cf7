"""How many generations stay in a checkpoint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.checkpoint.restore import check_restorable, restore
from spark_drain_agent.gate import Phase
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import DrainNotification, DrainState

from tests.semantics.operator_table import EVENTS
from tests.semantics.warm import Application, Batches, Event, Input, read_all, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("said", [DrainState.STALLED, DrainState.DRAINED])
def test_a_drain_that_was_taken_back_is_not_called_drained(
    said: DrainState, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    """Its request may still be in the store when the version that was drained starts again."""
    source, sink = Input(spark, tmp_path / "events"), Batches()
    source.add([Event(0, "a", 0)], [Event(1, "a", 1)])
    app = application()
    query = app.start(source.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids"), sink)
    read_all(query)
    with app.asked(DrainState.DRAINED, checkpoint__policy="Reseed") as report:
        old = report
    app.close()
    files = CheckpointFiles(SparkInternals(spark), f"file:{tmp_path}/checkpoints/q")
    restore(files, check_restorable(files, read_journal(files), discard_newer=False, accept_reuse=True))
    app = application()
    reported = replace(old, state=said, queries=tuple(replace(item, state=said) for item in old.queries))
    app.channel.reports.write({old.drain_id: reported.to_json()})
    app.channel.requests.write({old.drain_id: DrainNotification(drain_id=old.drain_id, created_at=datetime.now(UTC)).to_json()})
    until(lambda: app._agent.gate.phase is Phase.HELD, "the drain to be taken up")
    app.start(source.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids"), sink)
    with app.user_waits():
        until(lambda: (found := app.report(old.drain_id)) is not None and found.reason == "DrainUndone", "the drain to be refused")
    refused = app.report(old.drain_id)
    assert refused is not None
    assert (refused.state, "`drain cleanup --all`" in refused.message) == (DrainState.STALLED, True)
    assert "tried again" not in refused.message
    app.finish(old.drain_id)
    ended = app.report(old.drain_id)
    assert ended is not None
    assert "the next start of the same version" not in ended.message


@pytest.mark.parametrize("policy", ["Reseed", pytest.param("Continue", marks=pytest.mark.soak)])
def test_the_newest_generations_are_kept(policy: str, application: Callable[[], Application], spark: SparkSession, tmp_path: Path) -> None:
    events, sink = Input(spark, tmp_path / "events"), Batches()
    archives: list[str] = []
    for generation, retain in enumerate(("9", "2", "2", "0")):
        events.add(EVENTS[6 * generation : 6 * generation + 6])
        app = application()
        read_all(
            app.start(events.stream().groupBy(F.window("at", "10 seconds")).agg(F.collect_list("id").alias("ids")).select("ids"), sink)
        )
        report = app.drain(checkpoint__policy=policy, checkpoint__retainArchives=retain)
        app.close()
        assert [json.loads(offset) for offset in report.end_offsets.values()] == [{"logOffset": generation}]
        archives = [*archives, report.archive][-int(retain) :] if int(retain) else []
        there = [f"file:{path}" for path in (tmp_path / "checkpoints/q/_drain").iterdir() if path.is_dir()]
        assert sorted(there) == sorted(archives)
        assert (report.archive == "") is (retain == "0")
    if policy == "Reseed":
        assert sink.ids == Counter(event.id for event in EVENTS)
