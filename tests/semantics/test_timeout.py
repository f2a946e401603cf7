"""A test that runs into its timeout in the middle of a call to the JVM does not spoil the tests after it."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.own_jvm import forget_answers

pytestmark = [pytest.mark.spark, pytest.mark.timeout(60)]


def test_the_answer_of_a_call_that_was_broken_off_is_not_taken_for_the_next(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm

    def break_off(number: int, frame: object) -> None:
        pytest.fail("Timeout")

    before = signal.signal(signal.SIGUSR1, break_off)
    try:
        with pytest.raises(pytest.fail.Exception):
            jvm.java.lang.ProcessBuilder(["sh", "-c", f"sleep 0.5; kill -USR1 {os.getpid()}; sleep 0.5"]).start().waitFor()
        forget_answers()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert jvm.java.lang.Math.abs(-7) == 7
