"""What a sink is given where the agent starts its query later than the application has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import functions as F

from tests.agent.apps.sinks import read
from tests.agent.driver.streams import in_thread, start
from tests.agent.harness import Feed
from tests.agent.warm import Warm
from tests.support.logging_sink import LoggingSource, logged_in


def test_a_sink_has_the_options_of_the_application_in_a_late_start(warm: Warm, tmp_path: Path) -> None:
    """A path stays one, where Python takes the URI of the folder for a relative path."""
    warm.session.dataSource.register(LoggingSource)
    feed, checkpoint = Feed(tmp_path / "input"), tmp_path / "checkpoints/logged"
    feed.add()
    start(warm.session, tmp_path, "looped").processAllAvailable()
    with warm.requested(afterDrain="Keep") as asked:
        warm.drains.reaches(asked, "Drained")
        rows = read(warm.session, tmp_path).select(F.array("id").alias("ids")).writeStream.format("with_a_log")
        query = rows.queryName("logged").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    in_thread(query.awaitTermination)
    assert logged_in(checkpoint) == Counter(feed.ids)
    warm.session.streams.resetTerminated()
