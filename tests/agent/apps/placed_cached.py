"""A query each batch of which uses cached data; it is noted each time a partition of that is computed. Usage: placed_cached.py BASE."""

import sys
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tests.agent.apps.sinks import read, to_files

base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
write = to_files(base / "out")


def compute(numbers: Iterable[int]) -> Iterable[int]:
    with (base / "computed").open("a") as log:
        log.write("x\n")
    return numbers


cached = spark.sparkContext.parallelize(range(4), 4).mapPartitions(compute).cache()


def use(batch: DataFrame, batch_id: int) -> None:
    assert cached.sum() == 6
    write(batch, batch_id)


once = read(spark, base).withWatermark("at", "1 day").dropDuplicates(["id", "at"])
query = once.writeStream.option("checkpointLocation", str(base / "checkpoint")).foreachBatch(use).start(queryName="placed")
query.awaitTermination()
(base / "main-returned").touch()
