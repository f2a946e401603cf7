"""A driver that is drained and kills itself with SIGKILL, JVM included. Usage: crash_driver.py WHEN FLUSH INPUT BASE.

WHEN is the name of a point that the drain passes, or seconds after the drain was requested. FLUSH is the conf spark.sparkdrain.flush.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from spark_drain_agent import trace
from spark_drain_agent.launcher import main
from spark_drain_store.cli import main as drain_command

when, flush, source, base = sys.argv[1:]
store = f"file:{base}/store"


def request_drain() -> None:
    while len(list(Path(base, "out").glob("*.json"))) < 3:
        time.sleep(0.1)
    drain_command(["--metadata-store", store, "drain", "write"])
    if when.replace(".", "").isdigit():
        time.sleep(float(when))
        os.killpg(0, signal.SIGKILL)


def kill_at(reached: str) -> None:
    if reached == when:
        os.killpg(0, signal.SIGKILL)


trace.observe(kill_at)
os.environ["LEDGER_CRASH"] = when
confs = {"flush": flush, "claimSeconds": os.environ.get("LEDGER_CLAIM_SECONDS", "1")}
os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join(f"--conf spark.sparkdrain.{name}={value}" for name, value in confs.items()) + " pyspark-shell"
threading.Thread(target=request_drain, daemon=True).start()
sys.exit(main(["--metadata-store", store, str(Path(__file__).with_name("app.py")), source, base, "v1"]))
