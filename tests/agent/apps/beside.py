"""Two queries; main waits for one that fails when ``fail`` exists, and exits with 3 when ``leave`` does. Usage: beside.py BASE."""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tests.agent.driver.streams import start

base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()


def fail(batch: DataFrame, batch_id: int) -> None:
    """Fail like a sink that is away."""
    if (base / "fail").exists():
        raise ValueError("the sink of 'kept' is away")


start(spark, base, "drained")
kept = start(spark, base, "kept", fail)
while not kept.awaitTermination(1):
    if (base / "leave").exists():
        sys.exit(3)
