"""A driver that is drained and kills itself with SIGKILL, JVM included, at a named point. Usage: crash_driver.py POINT INPUT BASE."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from spark_drain_agent import trace
from spark_drain_agent.launcher import main
from spark_drain_store.cli import main as drain_command

point, source, base = sys.argv[1:]
store = f"file:{base}/store"


def request_drain() -> None:
    while len(list(Path(base, "out").glob("*.json"))) < 3:
        time.sleep(0.1)
    drain_command(["--metadata-store", store, "drain", "write"])


def kill_at(reached: str) -> None:
    if reached == point:
        os.killpg(0, signal.SIGKILL)


trace.observe(kill_at)
os.environ["LEDGER_CRASH"] = point
threading.Thread(target=request_drain, daemon=True).start()
sys.exit(main(["--metadata-store", store, str(Path(__file__).with_name("app.py")), source, base, "v1"]))
