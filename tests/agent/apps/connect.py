"""A query of Spark Connect, which counts on until it is told to leave. Usage: connect.py BASE api|local|URL.

``api`` asks for Connect by ``spark.api.mode`` and ``local`` by ``remote("local[2]")``, which both start a server in this process; anything
else is the address of a server.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder
from spark_drain_agent import attach

base, how = Path(sys.argv[1]), sys.argv[2]
if how == "api":
    spark = SparkSession.builder.config("spark.api.mode", "connect").getOrCreate()
else:
    spark = SparkSession.builder.remote("local[2]" if how == "local" else how).getOrCreate()
if how in ("api", "local"):
    (base / "port").write_text(str(DefaultChannelBuilder.default_port()))
try:
    attach(spark)
except TypeError as error:
    (base / "refused").write_text(str(error))
query = (
    spark.readStream.format("rate-micro-batch")
    .option("rowsPerBatch", "5")
    .load()
    .writeStream.option("checkpointLocation", str(base / f"checkpoint-{how[:3]}"))
    .trigger(processingTime="200 milliseconds")
    .start(path=str(base / f"out-{how[:3]}"), format="json")
)
(base / "started").touch()
while query.isActive and not (base / "leave").exists():
    time.sleep(0.1)
(base / "left").write_text(str(query.isActive))
query.stop()
spark.stop()
sys.exit(7)
