"""One windowed query. Usage: windows.py BASE."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from spark_drain_agent.drain import after_commit

from tests.agent.apps.sinks import counted, read, to_files

after_commit._RETRY_SECONDS = (0.2,)
base = Path(sys.argv[1])
spark = SparkSession.builder.getOrCreate()
query = (
    counted(read(spark, base))
    .writeStream.option("checkpointLocation", str(base / "checkpoint"))
    .foreachBatch(to_files(base / "out", poison=base / "poison"))
    .start(queryName="windows")
)
query.awaitTermination()
(base / "main-returned").touch()
