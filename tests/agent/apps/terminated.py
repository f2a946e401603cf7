"""One query, and a main that ends on SIGTERM, or on SIGINT, in the way that its second argument names. Usage: terminated.py BASE HOW."""

import asyncio
import contextlib
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.agent.driver.streams import start

base, how = Path(sys.argv[1]), sys.argv[2]
if how == "waits for it":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # before there are other threads, which inherit that
spark = SparkSession.builder.getOrCreate()


def stand_still(batch: DataFrame, batch_id: int) -> None:
    """Take as long as the test wants."""
    while (base / "block").exists():
        (base / "blocked").touch()
        time.sleep(0.05)


query = start(spark, base, "only", stand_still)


def stop(signum: int, frame: FrameType | None) -> None:
    """Stop as an application does that wants to leave nothing behind."""
    query.stop()
    spark.stop()
    sys.exit(5)


if how == "stops":
    signal.signal(signal.SIGTERM, stop)
if how == "waits for it":
    signal.sigwait({signal.SIGTERM})
    query.processAllAvailable()
    query.stop()
    query.awaitTermination()
    spark.stop()
    sys.exit(5)
if how == "exits":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
    while query.isActive:
        time.sleep(0.1)
if how == "asyncio":

    async def until_told() -> None:
        """Wait as a service does."""
        told = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
        await told.wait()

    asyncio.run(until_told())
    stop(0, None)
if how in ("flag", "stops the query only"):
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set() if how == "flag" else query.stop())
    while how == "flag" and not told.wait(0.2):
        pass
    if how == "flag":
        stop(0, None)
if how == "caught":

    class ToldError(Exception):
        """Raised by the handler."""

    def tell(signum: int, frame: FrameType | None) -> None:
        """Leave what main is doing."""
        raise ToldError

    signal.signal(signal.SIGTERM, tell)
    try:
        while True:
            time.sleep(1)
    except ToldError:
        pass
    stop(0, None)
if how == "any":

    def stop_all(signum: int, frame: FrameType | None) -> None:
        """Stop what runs, and leave the rest to main."""
        for running in spark.streams.active:
            running.stop()

    signal.signal(signal.SIGTERM, stop_all)
    spark.streams.awaitAnyTermination()
    while spark.streams.active:
        time.sleep(0.1)
    spark.stop()
    sys.exit(5)
if how == "stops Spark":
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=spark.stop).start())
    with contextlib.suppress(StreamingQueryException):  # Spark's own answer, where the query ran
        query.awaitTermination()
    while query.isActive:
        time.sleep(0.1)
    sys.exit(5)
if how == "interrupted":
    told = threading.Event()  # an exception in the middle of a call by Py4J may break the next one as well
    signal.signal(signal.SIGINT, lambda *_: told.set())
    while not told.wait(0.2):
        pass
    query.stop()
    while not (base / "cleaned-up").exists():
        time.sleep(0.1)
    spark.stop()
    sys.exit(5)
query.awaitTermination()
if how == "stops the query only":
    spark.stop()
    sys.exit(5)
