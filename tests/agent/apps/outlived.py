"""A main that ends before the thread that starts the only query and awaits it. Usage: outlived.py BASE [STORE], which it attaches to."""

import sys
import threading
import time
from pathlib import Path
from typing import Any

import spark_drain_agent
from pyspark.sql import SparkSession

from tests.agent.apps.sinks import counted, read, to_files

base = Path(sys.argv[1])


def refuse(*_: Any) -> None:
    """Do what Python does from 3.12 on."""
    raise RuntimeError("can't create new thread at interpreter shutdown")


def shut_down(join: Any = threading._shutdown) -> None:  # type: ignore[attr-defined]
    """Start no thread any more once it is the interpreter that calls this."""
    if sys._getframe().f_back is None:
        threading._start_new_thread = refuse  # type: ignore[attr-defined]
    join()


threading._shutdown = shut_down  # type: ignore[attr-defined]
spark = SparkSession.builder.getOrCreate()
for store in sys.argv[2:]:
    spark_drain_agent.attach(spark, store)


def work() -> None:
    """Start late: main has ended by then."""
    while threading.main_thread().is_alive():
        time.sleep(0.05)
    time.sleep(0.5)
    writer = counted(read(spark, base)).writeStream.queryName("only").option("checkpointLocation", str(base / "checkpoint"))
    # py4j needs a thread for foreachBatch
    (writer.format("noop") if sys.argv[2:] else writer.foreachBatch(to_files(base / "out"))).start().awaitTermination()
    (base / "over").touch()


threading.Thread(target=work).start()
