"""A start that takes long, in whose middle a signal handler ends the program in the way that the second argument names.

Usage: slow_start.py BASE HOW.
"""

import signal
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.agent.driver.streams import Listener, writer

base, how = Path(sys.argv[1]), sys.argv[2]
spark = SparkSession.builder.getOrCreate()


def wait(_: str | None) -> None:
    """Keep the start from returning."""
    (base / "starting").touch()
    time.sleep(15)


def end(*_: object) -> None:
    """Leave main, wherever it is."""
    if how == "interrupt":
        raise KeyboardInterrupt
    sys.exit(5)


spark.streams.addListener(Listener(wait))
signal.signal(signal.SIGTERM, end)
writer(spark, base, "only").start()
