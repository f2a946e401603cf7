"""The demonstration, step by step."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from demo import batches, dataset
from demo.batches import Offsets
from demo.cluster import Cluster
from demo.errors import DemoError
from demo.feeds import Feeds
from demo.job import EXECUTORS, FlightsJob, began, reached
from demo.killing import Killer
from demo.ledger import Ledger
from demo.parts import Parts, line
from demo.view import View, running

STEPS = 9
_LOOK_SECONDS = 0.5
_START_SECONDS = 600.0
_READ_SECONDS = 900.0
_DRAIN_SECONDS = 300.0
_LOOK_BACK = {
    "v1": (("get", "pdr"), ("describe", "pdr", "flights-v1"), ("events", "--for", "pipelinedrain/flights-v1")),
    "v2": (("get", "pdr"), ("events", "--for", "pipelinedrain/flights-v2")),
}


@dataclass(frozen=True, kw_only=True)
class Plot:
    """What the demonstration shall do.

    Parameters
    ----------
    drain_after : int
        Records that version 1 shall have read when its drain is applied.
    kill : bool
        kill -9 the driver in the middle of that drain.
    """

    drain_after: int
    kill: bool


@dataclass(frozen=True)
class _Stage:
    job: FlightsJob
    feed: Feeds
    view: View


def tell(cluster: Cluster, job: FlightsJob, plot: Plot, view: View) -> bool:
    """Run the job from the first flight to the ledger.

    Returns
    -------
    bool
        Whether the ledger is exact, nothing was dropped as late, and version 2 began where version 1 ended.

    Raises
    ------
    DemoError
        If the job cannot be run to its end.
    """
    view.step("installing the spark-drain operator with helm")
    cluster.install_operator()
    view.step(f"removing an earlier demonstration from namespace {job.kubectl.namespace}, making topics")
    job.clear()
    job.prepare()
    feed = job.follow()
    stage = _Stage(job, feed, view)
    try:
        view.step(f"starting version 1 (flights per carrier and 6-hour window) with checkpoint {job.checkpoint}, then the producer")
        job.start("v1")
        _until(lambda: len(running(feed, "executor")) == EXECUTORS, stage, "v1", _START_SECONDS)
        job.start_producer()
        view.step(f"reading until {plot.drain_after:,} records are through version 1")
        _until(lambda: sum(reached(feed.seen("v1")).values()) >= plot.drain_after, stage, "v1", _READ_SECONDS)
        drains = [_drain(stage, "v1", kill=plot.kill)]
        view.step("starting version 2 on the same checkpoint (flights, delays and distances per airport, carrier and window)")
        job.start("v2")
        _until(lambda: _all_read(job, feed), stage, "v2", _READ_SECONDS)
        drains.append(_drain(stage, "v2", kill=False))
    finally:
        feed.close()
    view.step("comparing the output with pandas' own count of the input")
    return _settle(stage, drains)


def _drain(stage: _Stage, version: str, *, kill: bool) -> str:
    """Drain a version, and return how long that took, as a sentence."""
    job, feed, view = stage.job, stage.feed, stage.view
    name, before = f"flights-{version}", feed.seen(version)
    parts = Parts(job.kubectl, name)
    killer = Killer(job.kubectl) if kill else None
    try:
        path = job.drain(version)
        view.step(f"$ kubectl apply -f {path.relative_to(path.parents[3])}")
        _until(lambda: _finished(feed, name), stage, version, _DRAIN_SECONDS)
    finally:
        seconds = parts.close()
        if killer is not None:
            killer.close()
    for command in _LOOK_BACK[version]:
        view.say(f"$ kubectl {' '.join(command)}")
        view.block(job.kubectl.run(*command))
    drain = feed.object("PipelineDrain", name) or {}
    if _condition(drain, "Succeeded") != "True":
        raise DemoError(f"drain {name} ended as {drain['status'].get('phase')}: {drain['status'].get('message')}")
    if killer is not None:
        killer.check(job.drain_report(version))
        view.say(f"the driver was killed with -9 in state {killer.state}; the drain was finished by its next run")
    return line(name, seconds, before)


def _settle(stage: _Stage, drains: Sequence[str]) -> bool:
    job, feed, view = stage.job, stage.feed, stage.view
    found = Ledger(dataset.count(job.settings.count), job.outputs())
    view.block(found.table())
    first, second = feed.seen("v1"), feed.seen("v2")
    ended, started = job.end_offsets("v1"), began(second)
    gaps = batches.unread([*first, *second], job.produced(feed))
    dropped = {(batch.run, batch.number): batch.dropped for batch in (*first, *second)}
    if gaps:
        view.block("\n".join(gaps))
    view.say(f"version 1 ended before offsets {_written(ended)} (ConfigMap flights-v1-result)")
    view.say(f"version 2 began at offsets     {_written(started)} (its first batch)")
    view.say(f"rows dropped by watermark: {sum(dropped.values())} in {len(dropped)} batches")
    for told in drains:
        view.say(told)
    exact = found.exact and ended == started and not gaps and not sum(dropped.values())
    view.say(found.line())
    return exact


def _all_read(job: FlightsJob, feed: Feeds) -> bool:
    return job.production_over(feed) and sum(reached(feed.seen("v2")).values()) == (job.settings.count or dataset.FLIGHTS)


def _finished(feed: Feeds, name: str) -> bool:
    drain = feed.object("PipelineDrain", name)
    return drain is not None and _condition(drain, "Finished") == "True"


def _condition(drain: Mapping[str, Any], kind: str) -> str:
    conditions = drain.get("status", {}).get("conditions", [])
    return next((item["status"] for item in conditions if item["type"] == kind), "Unknown")


def _until(done: Callable[[], bool], stage: _Stage, version: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        stage.job.production_over(stage.feed)  # raises when it has failed
        application = stage.feed.object("SparkApplication", "flights") or {}
        state = application.get("status", {}).get("applicationState", {})
        if state.get("state") == "FAILED":
            raise DemoError(f"application flights failed: {state.get('errorMessage', '')}; logs of its drivers are in {stage.job.logs}")
        if time.monotonic() > deadline:
            raise DemoError(f"this took more than {seconds:.0f} s; logs of the drivers are in {stage.job.logs}")
        stage.view.show(stage.job, stage.feed, version)
        time.sleep(_LOOK_SECONDS)


def _written(offsets: Offsets) -> str:
    return "  ".join(f"{partition}:{offset:,}" for partition, offset in offsets.items()) or "(none)"
