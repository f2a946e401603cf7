"""Which executors Spark's ExecutorAllocationManager ends, in a cluster of processes."""

from __future__ import annotations

from pathlib import Path

from tests.agent.harness import Driver

CONFS = {
    "spark.master": "local-cluster[3,1,512]",
    "spark.executor.memory": "512m",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.initialExecutors": "2",
    "spark.dynamicAllocation.minExecutors": "2",
    "spark.dynamicAllocation.maxExecutors": "3",
}


def test_an_executor_is_set_aside_and_taken_back(tmp_path: Path) -> None:
    driver = Driver("set_aside.py", tmp_path, store=None, confs=CONFS)
    try:
        assert driver.wait() == 0, driver.tail()
    finally:
        driver.close()
