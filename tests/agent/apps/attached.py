"""A pass-through query of an application that attaches the agent itself. Usage: attached.py BASE STORE [late|elsewhere].

Another query is started before the agent is attached when late, and in another session when elsewhere.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from spark_drain_agent import attach

from tests.agent.apps.sinks import read, to_files

base, store, *late = Path(sys.argv[1]), *sys.argv[2:]
spark = SparkSession.builder.getOrCreate()
if late:
    read(spark.newSession() if late == ["elsewhere"] else spark, base).writeStream.queryName("unseen").format("noop").start()
attach(spark, store)
query = read(spark, base).writeStream.option("checkpointLocation", str(base / "checkpoint")).foreachBatch(to_files(base / "out")).start()
query.awaitTermination()
(base / "main-returned").touch()
