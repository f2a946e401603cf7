"""Checkpoints in Google Cloud Storage: drained in both ways, with both providers of state, and read on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark_drain_agent.queries.flush_in_place import FLUSH_CONF

from tests.s3.table import check_versions
from tests.semantics import test_continue
from tests.semantics.warm import PROVIDERS, Application

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Begin = Callable[[], Application]

_IN_EVERY_RUN = {("WorkCopy", "rocksdb")}
SETTINGS = [(flush, provider) for flush in ("Auto", "WorkCopy") for provider in ("hdfs", "rocksdb")]


@pytest.mark.parametrize(
    "setting", [pytest.param(each, marks=[] if each in _IN_EVERY_RUN else pytest.mark.soak) for each in SETTINGS], ids="-".join
)
def test_an_incompatible_version_reads_on(
    setting: tuple[str, str], bucket: str, application: Begin, spark: SparkSession, tmp_path: Path
) -> None:
    flush, provider = setting
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
    spark.conf.set(FLUSH_CONF, flush)
    check_versions(application, spark, bucket, tmp_path / "events")


@pytest.mark.soak
@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_state_is_taken_back_from_the_flush(flush: str, application: Begin, spark: SparkSession, tmp_path: Path) -> None:
    test_continue.test_a_window_at_the_cut_has_a_row_from_each_side(flush, application, spark, tmp_path)
