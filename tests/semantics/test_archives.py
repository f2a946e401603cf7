"""How many generations stay in a checkpoint."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.semantics.operator_table import EVENTS
from tests.semantics.warm import Application, Batches, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("policy", ["Reseed", "Continue"])
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
