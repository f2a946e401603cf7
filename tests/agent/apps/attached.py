"""A pass-through query of an application that attaches the agent itself. Usage: attached.py BASE STORE."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from spark_drain_agent import attach

from tests.agent.apps.sinks import read, to_files

base, store = Path(sys.argv[1]), sys.argv[2]
spark = SparkSession.builder.getOrCreate()
attach(spark, store)
query = read(spark, base).writeStream.option("checkpointLocation", str(base / "checkpoint")).foreachBatch(to_files(base / "out")).start()
query.awaitTermination()
(base / "main-returned").touch()
