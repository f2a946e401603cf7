"""By what an application is known to be the version that was drained."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from spark_drain_agent.queries.tracked import VERSION_CONF

from tests.semantics.warm import Application, Batches, Event, Input, read_all

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("words", "same"), [((None, None), False), (("1", "1"), True), (("1", "2"), False)])
def test_the_owners_word_stands_for_a_plan_that_each_start_makes_anew(
    words: tuple[str | None, str | None], same: bool, application: Callable[[], Application], spark: SparkSession, tmp_path: Path
) -> None:
    events, found = Input(spark, tmp_path / "events"), set()
    for number, word in enumerate(words):
        events.add([Event(number, "a", number)])
        spark.conf.unset(VERSION_CONF) if word is None else spark.conf.set(VERSION_CONF, word)
        app = application()
        try:
            counted = events.stream().groupBy("key", F.lit(time.time()).alias("started")).count()
            read_all(app.start(counted, Batches(), mode="update"), None)
            app.drain(stateLossPolicy="Accept")
        finally:
            app.close()
            spark.conf.unset(VERSION_CONF)
        found.add(json.loads((tmp_path / "checkpoints/q/_drain/journal").read_text())["fingerprint"])
    assert (len(found) == 1) is same
