"""Dynamic allocation gets along without an executor that is set aside, and counts on it again. Usage: set_aside.py BASE."""

import time

from pyspark.sql import SparkSession
from spark_drain_agent.spark_internals.dynamic_allocation import DynamicAllocation
from spark_drain_agent.spark_internals.session import SparkInternals

from tests.support.waiting import eventually

spark = SparkSession.builder.getOrCreate()
internals = SparkInternals(spark)
allocation = DynamicAllocation(internals)
backend = spark.sparkContext._jsc.sc().schedulerBackend()


def executors() -> set[str]:
    """Return those that are not about to be ended, which takes a while."""
    return {executor_id for executor_id, _ in internals.executors() if backend.isExecutorActive(executor_id)}


assert allocation.enabled
spark.range(1).count()  # until its first stage Spark wants as many as at the start
eventually(lambda: allocation.wanted == len(executors()) == 2, "two executors, as many as the minimum")
time.sleep(2)  # both have been idle for too long

aside = max(executors())
allocation.set_aside(aside)
jvm = internals.jvm
nowhere = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
spark.sparkContext._jsc.sc().requestTotalExecutors(3, 0, nowhere)
eventually(lambda: len(executors()) == 3, "one more")
time.sleep(3)
assert len(executors()) == 3, "idle executors are ended though there would be too few without the one that is set aside"
assert allocation.wanted == 2

allocation.take_back(aside)
eventually(lambda: len(executors()) == 2, "the one that is too many to be ended")
time.sleep(2)
assert len(executors()) == allocation.wanted == 2
spark.stop()
