"""Short runs of the flights job, and what is kept of them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo import cluster as where
from demo import feeds
from demo.cluster import Cluster
from demo.feeds import Feeds
from demo.job import EXECUTORS, FlightsJob, Settings, reached
from demo.killing import POD, Killer
from demo.stores import SHARED_FOLDER, Store
from demo.view import running
from tests.support.waiting import eventually
from tools import spark_java

FLIGHTS = 6_000
DRAIN_AFTER = 2_000
REST = FLIGHTS // 3  # records per batch of version 2, which has nothing to be caught in the middle of
# Lives of a minute: good code is not worth its compilation, nor a lease of quarter of a minute its wait. Two executors are enough to begin
# with, and a third one may never be there.
_CONF = {
    "spark.driver.extraJavaOptions": spark_java.QUICK,
    "spark.executor.extraJavaOptions": spark_java.QUICK,
    "spark.scheduler.minRegisteredResourcesRatio": "0.6",
    "spark.sparkdrain.leaseSeconds": "5",
}
_START_SECONDS = 240.0
_READ_SECONDS = 180.0
_DRAIN_SECONDS = 120.0


@dataclass
class Run:
    """What a run of the job left to be looked at.

    ``drains`` and ``results`` are by version, as they were when the drain had finished. All else is about the drain of version 1:
    ``pods`` are those just before it, ``left`` those that still ran when it said that it had finished.
    """

    job: FlightsJob
    feed: Feeds
    drains: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: list[Any] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    requests_left: list[str] = field(default_factory=list)
    application: dict[str, Any] = field(default_factory=dict)
    described: str = ""
    listed: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def run_of(
    cluster: Cluster,
    logs: Path,
    *,
    idempotent: bool,
    idle: int = 0,
    max_offsets: int = 250,
    drain_after: int = DRAIN_AFTER,
    store: Store = SHARED_FOLDER,
) -> Iterator[Run]:
    """Run version 1, with some executors too many, until it has read some of the flights; clear the namespace afterwards."""
    settings = Settings(
        image=cluster.example_image,
        conf=_CONF,
        prefix="e2e-",
        count=FLIGHTS,
        per_second=600,
        max_offsets=max_offsets,
        idempotent=idempotent,
        store=store,
    )
    job = FlightsJob(cluster.kubectl(where.TEST_NAMESPACE), settings, logs)
    job.clear()
    job.prepare()
    feed = job.follow()
    run = Run(job, feed)
    try:
        job.start("v1", idle=idle)
        eventually(lambda: len(running(feed, "executor")) == EXECUTORS, "both executors run", _START_SECONDS, every=0.5)
        job.start_producer()
        eventually(
            lambda: sum(reached(feed.seen("v1")).values()) >= drain_after, f"v1 has read {drain_after} flights", _READ_SECONDS, every=0.5
        )
        run.pods = job.kubectl.get("pods", "--selector=spark-role")["items"]
        yield run
    finally:
        feed.close()
        job.clear()


def drain_and_replace(run: Run) -> None:
    """Drain version 1, start version 2, let it read all flights, drain it."""
    drain_once(run)
    replace(run)


def replace(run: Run) -> None:
    """Start version 2, let it read all flights, drain it."""
    run.job.start("v2", max_offsets=REST)
    read_all(run)
    drain(run, "v2")


def read_all(run: Run) -> None:
    """Wait until version 2 has read all flights."""
    eventually(
        lambda: sum(reached(run.feed.seen("v2")).values()) == FLIGHTS,
        f"v2 has read up to flight {FLIGHTS}",
        _START_SECONDS + _READ_SECONDS,
        every=0.5,
    )


def drain_once(run: Run) -> None:
    """Drain version 1."""
    drain(run, "v1")
    _look(run)


def drain_and_kill(run: Run) -> Killer:
    """Drain version 1 and delete its driver's pod in the middle of that."""
    killer = Killer(run.job.kubectl, POD)
    try:
        drain(run, "v1", _START_SECONDS + _DRAIN_SECONDS)  # the next run of the driver has to start
    finally:
        killer.close()
    _look(run)
    return killer


def drain(run: Run, version: str, seconds: float = _DRAIN_SECONDS) -> None:
    """Drain a version and keep what is said of it."""
    job = run.job
    name = f"flights-{version}"
    job.drain(version)
    # As a user waits: the condition holds however the drain ends.
    job.kubectl.run("wait", f"pdr/{name}", "--for=condition=Finished", f"--timeout={seconds:.0f}s")
    run.drains[version] = job.kubectl.get("pdr", name)
    assert run.drains[version]["status"]["phase"] == "Drained", json.dumps(run.drains[version]["status"], indent=1)
    run.results[version] = job.drain_report(version)


def _look(run: Run) -> None:
    kubectl = run.job.kubectl
    now = kubectl.get("pods", "--selector=spark-role")["items"]
    run.left = [pod["metadata"]["name"] for pod in now if pod["status"]["phase"] in ("Pending", "Running")]
    run.requests_left = list(kubectl.get("configmap", "sparkapplication-flights-agent-requests").get("data") or {})
    run.application = kubectl.get(feeds.APPLICATIONS, "flights")
    run.listed = kubectl.run("get", "pdr")
    run.described = kubectl.run("describe", "pdr", "flights-v1")
    run.events = kubectl.get("events", "--field-selector=involvedObject.name=flights-v1")["items"]
