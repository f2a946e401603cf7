"""One short run of the flights job, and what is kept of it."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from demo import feeds
from demo.feeds import Feeds
from demo.job import EXECUTORS, FlightsJob, reached
from demo.view import running

FLIGHTS = 6_000
DRAIN_AFTER = 2_000
_START_SECONDS = 240.0
_READ_SECONDS = 180.0
_DRAIN_SECONDS = 120.0


@dataclass
class Run:
    """What one run of the job left to be looked at.

    ``drains`` and ``results`` are by version, as they were when the drain had finished; ``pods`` are those of version 1 just
    before its drain; ``left`` are the pods that were still running when that drain said that it had finished.
    """

    job: FlightsJob
    feed: Feeds
    drains: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: list[Any] = field(default_factory=list)
    left: list[Any] = field(default_factory=list)
    requests_left: list[str] = field(default_factory=list)
    application: dict[str, Any] = field(default_factory=dict)
    described: str = ""
    listed: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)


def tell(story: Run) -> None:
    """Version 1, its drain in mid-stream, version 2 to the last flight, its drain."""
    job, feed = story.job, story.feed
    job.start("v1")
    _until(lambda: len(running(feed, "executor")) == EXECUTORS, "both executors run", _START_SECONDS)
    job.start_producer()
    _until(lambda: sum(reached(feed.seen("v1")).values()) >= DRAIN_AFTER, f"v1 has read {DRAIN_AFTER} flights", _READ_SECONDS)
    story.pods = job.kubectl.get("pods", "--selector=spark-role")["items"]
    _drain(story, "v1")
    story.left = [
        pod for pod in job.kubectl.get("pods", "--selector=spark-role")["items"] if pod["status"]["phase"] in ("Pending", "Running")
    ]
    story.requests_left = list(job.kubectl.get("configmap", "sparkapplication-flights-drain-requests").get("data") or {})
    story.application = job.kubectl.get(feeds.APPLICATIONS, "flights")
    story.listed = job.kubectl.run("get", "pdr")
    story.described = job.kubectl.run("describe", "pdr", "flights-v1")
    story.events = job.kubectl.get("events", "--field-selector=involvedObject.name=flights-v1")["items"]
    job.start("v2")
    _until(lambda: sum(reached(feed.seen("v2")).values()) == FLIGHTS, f"v2 has read up to flight {FLIGHTS}", _START_SECONDS + _READ_SECONDS)
    _drain(story, "v2")


def _drain(story: Run, version: str) -> None:
    job = story.job
    name = f"flights-{version}"
    job.drain(version)
    # As a user waits: the condition holds however the drain ends.
    job.kubectl.run("wait", f"pdr/{name}", "--for=condition=Finished", f"--timeout={_DRAIN_SECONDS:.0f}s")
    story.drains[version] = job.kubectl.get("pdr", name)
    assert story.drains[version]["status"]["phase"] == "Drained", json.dumps(story.drains[version]["status"], indent=1)
    story.results[version] = job.drain_report(version)


def _until(done: Callable[[], bool], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.5)
