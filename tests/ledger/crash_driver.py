"""A driver that is drained and kills itself with SIGKILL, JVM included. Usage: crash_driver.py WHEN FLUSH INPUT BASE [OPTION...].

WHEN is seconds after the drain was requested, or points that the drain passes, with ``+`` between them: as many queries are held, each at
another point, and the driver is killed when all of them are there. After ``>`` a glob below BASE may follow: then the query at the last
point is let on, and the driver is killed as soon as something new matches it. FLUSH is the conf spark.sparkdrain.flush; the rest are
options of the drain, NAME=VALUE. LEDGER_APP in the environment is the application with its arguments after INPUT, BASE and VERSION;
with LEDGER_VERSION another version than v1 is started, of which no drain is requested.
"""

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from spark_drain_agent import milestones
from spark_drain_agent.cli.run_script import main
from spark_drain_store.cli import main as drain_command

BATCHES = 3
APP = str(Path(__file__).with_name("app.py"))

when, flush, source, base, *options = sys.argv[1:]
store = f"file:{base}/store"
points, _, glob = when.partition(">")
open_points = points.split("+")
queries, last = len(open_points), open_points[-1]
arriving = threading.Lock()
all_there = threading.Event()


def kill() -> None:
    os.killpg(0, signal.SIGKILL)


def request_drain() -> None:
    def under_way() -> int:
        return len(list(Path(base, "checkpoints").glob(f"*/commits/{BATCHES - 1}")))

    while under_way() < queries:
        time.sleep(0.05)
    drain_command(["--metadata-store", store, "drain", "write", *(part for option in options for part in ("--option", option))])
    if when.replace(".", "").isdigit():
        time.sleep(float(when))
        kill()


def there() -> set[Path]:
    with suppress(OSError):  # a folder that was just renamed
        return set(Path(base).glob(glob))
    return set()


def kill_after(before: set[Path]) -> None:
    while there() <= before:
        pass
    kill()


def arrive(point: str) -> None:
    with arriving:
        if point not in open_points:
            return
        open_points.remove(point)
        if not open_points and not glob:
            kill()
        if not open_points:
            threading.Thread(target=kill_after, args=(there(),), daemon=True).start()
            all_there.set()
    all_there.wait()
    if point != last:
        threading.Event().wait()


for unused in ("numpy", "pandas", "pyarrow"):
    # PySpark would load them for its test helpers when it makes a session, which takes longer than all else that Python does here.
    sys.modules[unused] = None  # type: ignore[assignment]
milestones.observe(arrive)
confs = {"flush": flush, "leaseSeconds": os.environ.get("LEDGER_LEASE_SECONDS", "1"), "allowedPaths": base}
mine = " ".join(f"--conf spark.sparkdrain.{name}={value}" for name, value in confs.items())
os.environ["PYSPARK_SUBMIT_ARGS"] = f"{mine} {os.environ['PYSPARK_SUBMIT_ARGS']}"
version = os.environ.get("LEDGER_VERSION", "v1")
if version == "v1":
    threading.Thread(target=request_drain, daemon=True).start()
app, *arguments = json.loads(os.environ["LEDGER_APP"])
os.chdir(base)
sys.exit(main(["--metadata-store", store, app, source, "." if app == APP else base, version, *arguments]))
