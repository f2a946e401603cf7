"""Entries of the Spark configuration count where the program names them, as environment variables do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkConf, SparkContext
from spark_drain_agent.spark_internals.environment import surroundings

CONFS = {
    "spark.clicks.out": "/out",
    "spark.clicks.rules": "/rules.yaml",
    "spark.clicks.password": "1",
    "spark.app.name": "clicks",
    "spark.app.id": "local-1",
    "spark.driver.host": "10.0.0.1",
    "spark.kubernetes.executor.podNamePrefix": "clicks-1",
    "spark.executorEnv.EVENT_TIME_SHIFT": "0",
    "spark.hadoop.fs.s3a.endpoint": "a",
}


class Context:
    def __init__(self, conf: SparkConf) -> None:
        self._conf = conf


def named(monkeypatch: pytest.MonkeyPatch, *texts: str, **other: str) -> list[str]:
    conf = SparkConf(loadDefaults=False)
    for name, value in (CONFS | other).items():
        conf.set(name, value)
    monkeypatch.setattr(SparkContext, "_active_spark_context", Context(conf))
    return [*surroundings(texts, "")]


def test_what_is_named_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(monkeypatch, "spark.clicks.out", "spark.app.name") == ["spark.app.name=clicks", "spark.clicks.out=/out"]
    assert named(monkeypatch, "spark.clicks.out", **{"spark.clicks.out": "/other"}) == ["spark.clicks.out=/other"]


def test_what_executors_get_as_a_variable_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(monkeypatch, "EVENT_TIME_SHIFT") == ["spark.executorEnv.EVENT_TIME_SHIFT=0"]


def test_a_file_that_is_named_there_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("shift: 8")
    rules = str(tmp_path / "rules.yaml")
    assert named(monkeypatch, "spark.clicks.rules", **{"spark.clicks.rules": rules})[1:] != []


def test_what_is_of_one_start_or_secret_or_not_named_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = {"spark.clicks.out", "spark.clicks.rules", "spark.app.name", "spark.hadoop.fs.s3a.endpoint"}
    assert {line.partition("=")[0] for line in named(monkeypatch, *CONFS)} == {*counting, "spark.executorEnv.EVENT_TIME_SHIFT"}
    assert named(monkeypatch, "spark.clicks", "out") == []


def test_a_context_that_was_stopped_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    assert [*surroundings(["spark.clicks.out"], "")] == []
