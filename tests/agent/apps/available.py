"""A bounded query, slow on purpose, with a UDF that asks whether it sees a drain pane. Usage: available.py BASE."""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_drain_agent import is_drain_pane

from tests.agent.apps.sinks import counted, read, to_files

base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
write = to_files(base / "out", block=base / "block")


def slowly(batch: DataFrame, batch_id: int) -> None:
    time.sleep(0.5)
    if is_drain_pane():
        (base / "block").touch()
    write(batch, batch_id)


seen_by_udf = F.udf(lambda _: is_drain_pane(), "boolean")
query = (
    counted(read(spark, base))
    .withColumn("udf_pane", seen_by_udf("count"))
    .writeStream.queryName("bounded")
    .trigger(availableNow=True)
    .option("checkpointLocation", str(base / "checkpoint"))
    .foreachBatch(slowly)
    .start()
)
query.awaitTermination()
(base / "main-returned").touch()
