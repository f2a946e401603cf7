"""A test that runs into its timeout in the middle of a call to the JVM does not spoil the tests after it."""

from __future__ import annotations

import signal
import threading
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
        threading.Timer(0.5, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1)).start()
        with pytest.raises(pytest.fail.Exception) as broken:
            jvm.java.lang.Thread.sleep(1500)
        forget_answers()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert jvm.java.lang.Math.abs(-7) == 7
    assert broken.traceback, "what holds the connection"
