"""Spark's abortable file manager logs that the store has refused a file and goes on: a drain finds what is missing of the state."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.s3.moments import Setting
from tests.s3.test_refusals import Generations
from tests.support.s3_proxy import Fault
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

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
