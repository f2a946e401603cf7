"""Spark's abortable file manager logs that the store has refused a file and goes on: a drain finds what is missing of the state."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.s3.moments import Setting
from tests.s3.test_refusals import Generations
from tests.semantics.test_formats import OFFSETS, STATE
from tests.semantics.warm import PROVIDERS
from tests.support.own_jvm import session_confs
from tests.support.s3_proxy import Fault
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(600)]

_FLUSHED = 6
"""Version of the state after the second drain: each time a batch, one without data, and the flush."""


@pytest.mark.parametrize("flush", ["Auto", "WorkCopy"])
def test_state_that_was_not_written_is_written_by_another_try(flush: str, s3: S3Server, spark: SparkSession, tmp_path: Path) -> None:
    setting = Setting(flush, "Continue", "abortable")
    setting.apply(spark)
    generations = Generations(setting, spark, s3, tmp_path / "events")
    generations.drained(Fault(kind="none"))
    assert generations.drained(Fault(kind="PUT", key=f"/state/0/0/{_FLUSHED}.delta$", times=1, status=403))
    generations.drained(Fault(kind="none"))


def test_files_with_unique_ids(s3: S3Server, spark: SparkSession, tmp_path: Path) -> None:
    """A commit names the files in which the state is: what another try of the task has left is not that."""
    setting = Setting("WorkCopy", "Continue", "abortable")
    setting.apply(spark)
    confs = {"spark.sql.streaming.stateStore.providerClass": PROVIDERS["rocksdb"], STATE: "2", OFFSETS: "2"}
    with session_confs(spark, confs):
        generations = Generations(setting, spark, s3, tmp_path / "events")
        generations.drained(Fault(kind="none"))
        assert generations.drained(Fault(kind="PUT", key=rf"/state/0/0/{_FLUSHED}_[0-9a-f-]+\.(zip|changelog)$", times=1, status=403))
        generations.drained(Fault(kind="none"))
