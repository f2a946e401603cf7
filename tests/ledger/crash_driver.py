"""A driver that is drained and kills itself with SIGKILL, JVM included. Usage: crash_driver.py WHEN FLUSH INPUT BASE [OPTION...].

WHEN is seconds after the drain was requested, or points that the drain passes, with ``+`` between them: as many queries are held, each at
another point, and the driver is killed when all of them are there. After ``>`` a folder below BASE may follow: then the query at the last
point is let on, and the driver is killed while something is written below that folder. FLUSH is the conf spark.sparkdrain.flush; the rest
are options of the drain, NAME=VALUE.
"""

import os
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from spark_drain_agent import trace
from spark_drain_agent.launcher import main
from spark_drain_store.cli import main as drain_command

BATCHES = 3

when, flush, source, base, *options = sys.argv[1:]
store = f"file:{base}/store"
points, _, folder = when.partition(">")
open_points = points.split("+")
queries, last = len(open_points), open_points[-1]
arriving = threading.Lock()
all_there = threading.Event()


def kill() -> None:
    os.killpg(0, signal.SIGKILL)


def request_drain() -> None:
    def batches() -> Counter[str]:
        return Counter(path.name.rpartition("-")[0] for path in Path(base, "out").glob("*.json"))

    while len(done := batches()) < queries or min(done.values()) < BATCHES:
        time.sleep(0.05)
    drain_command(["--metadata-store", store, "drain", "write", *(part for option in options for part in ("--option", option))])
    if when.replace(".", "").isdigit():
        time.sleep(float(when))
        kill()


def kill_in_the_write() -> None:
    while True:
        with suppress(OSError):  # a folder that was just renamed
            if any(Path(base, folder).rglob("_temporary")):
                kill()


def arrive(point: str) -> None:
    with arriving:
        if point not in open_points:
            return
        open_points.remove(point)
        if not open_points and not folder:
            kill()
        if not open_points:
            threading.Thread(target=kill_in_the_write, daemon=True).start()
            all_there.set()
    all_there.wait()
    if point != last:
        threading.Event().wait()


for unused in ("numpy", "pandas", "pyarrow"):
    # PySpark would load them for its test helpers when it makes a session, which takes longer than all else that Python does here.
    sys.modules[unused] = None  # type: ignore[assignment]
trace.observe(arrive)
confs = {"flush": flush, "claimSeconds": os.environ.get("LEDGER_CLAIM_SECONDS", "0.5"), "allowedPaths": base}
mine = " ".join(f"--conf spark.sparkdrain.{name}={value}" for name, value in confs.items())
os.environ["PYSPARK_SUBMIT_ARGS"] = f"{mine} {os.environ['PYSPARK_SUBMIT_ARGS']}"
threading.Thread(target=request_drain, daemon=True).start()
sys.exit(main(["--metadata-store", store, str(Path(__file__).with_name("app.py")), source, base, "v1"]))
