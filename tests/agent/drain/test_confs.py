"""Confs of the application that are wrong: a drain is refused before anything is touched, and a run of which none is asked goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_agent.driver.watch import Watch

from tests.agent.apps.sinks import counted, read, to_files
from tests.agent.harness import Feed, exactly, ids_in
from tests.agent.warm import Warm
from tests.support.own_jvm import session_confs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

LEASE = "spark.sparkdrain.leaseSeconds"


def start(warm: Warm, base: Path) -> StreamingQuery:
    writer = counted(read(warm.session, base)).writeStream.queryName("counts").option("checkpointLocation", str(base / "checkpoint"))
    query = writer.foreachBatch(to_files(base / "out")).start()
    query.processAllAvailable()
    return query


@pytest.mark.parametrize(
    ("conf", "value", "told"),
    [
        ("spark.sparkdrain.flush", "auto", "is 'auto', and may be Auto or WorkCopy"),
        ("spark.sparkdrain.checkpoint.triedObjectStores", "s3a://", "has 's3a://', and is a list of schemes, comma separated"),
        ("spark.sparkdrain.checkpoint.atomicRenames", "abfss, oss;cosn", "has 'oss;cosn', and is a list of schemes, comma separated"),
    ],
)
def test_a_value_that_says_nothing_is_refused_by_name(warm: Warm, tmp_path: Path, conf: str, value: str, told: str) -> None:
    Feed(tmp_path / "input").add(1)
    query = start(warm, tmp_path)
    with session_confs(warm.session, {conf: value}):
        reason, message = warm.refused()
    assert reason == "UnsupportedOption"
    assert message.startswith(f"{conf} {told}")
    assert query.isActive


def test_the_log_warns_of_it_in_time(warm: Warm, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watch, "begin", lambda _: None)
    with session_confs(warm.session, {"spark.sparkdrain.flush": "auto"}):
        warm.agent.begin()
    assert "drains will be rejected: spark.sparkdrain.flush is 'auto', and may be Auto or WorkCopy" in caplog.text


def test_all_durations_that_cannot_be_read_are_told_at_once(warm: Warm, tmp_path: Path) -> None:
    Feed(tmp_path / "input").add(1)
    start(warm, tmp_path)
    with session_confs(warm.session, {LEASE: "soon", "spark.sparkdrain.startSeconds": "0"}):
        reason, message = warm.refused()
    assert reason == "UnsupportedOption"
    assert f"{LEASE} is 'soon', and may be" in message
    assert "; spark.sparkdrain.startSeconds is '0', and may be 1 to 3600 s: " in message
    assert message.endswith(": start the application with such values")


def test_a_lease_that_cannot_be_read_is_in_the_way_of_drains_only(warm: Warm, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "input")
    feed.add(3)
    query = start(warm, tmp_path)
    with session_confs(warm.session, {LEASE: "soon"}):
        assert warm.refused() == (
            "UnsupportedOption",
            f"{LEASE} is 'soon', and may be 1 to 600 s: a number of seconds, or one with a unit, as in '15s', '1500ms', '2 min' or '1h'; "
            "the default is 15 s: start the application with such a value",
        )
        assert query.isActive
        assert not (tmp_path / "checkpoint/_drain").exists()
    with session_confs(warm.session, {LEASE: "1500ms"}):
        warm.drain()
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
    with session_confs(warm.session, {LEASE: "15x"}):  # the first start after a drain takes the lease
        feed.add()
        start(warm, tmp_path)
    warm.drain()
    assert ids_in(tmp_path / "out") == exactly(feed.ids)
