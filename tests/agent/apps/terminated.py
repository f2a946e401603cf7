"""One query, and a main that stops everything or exits on SIGTERM when it has a handler. Usage: terminated.py BASE stops|exits|default."""

import signal
import sys
import time
from pathlib import Path
from types import FrameType

from pyspark.sql import SparkSession

from tests.agent.driver.streams import start

base, how = Path(sys.argv[1]), sys.argv[2]
spark = SparkSession.builder.getOrCreate()
query = start(spark, base, "only")


def stop(signum: int, frame: FrameType | None) -> None:
    """Stop as an application does that wants to leave nothing behind."""
    query.stop()
    spark.stop()
    sys.exit(5)


if how == "stops":
    signal.signal(signal.SIGTERM, stop)
if how == "exits":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
    while query.isActive:
        time.sleep(0.1)
query.awaitTermination()
