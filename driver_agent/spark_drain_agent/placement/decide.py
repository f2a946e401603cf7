"""Why a placement is refused, and how many executors it needs: pure functions (table-tested)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from spark_drain_store.placement_messages import Destination, PlacementRequest, UnsupportedDestinationError

from spark_drain_agent.spark_internals.executor_pods import ExecutorPod

__all__ = ["Seen", "asked_for", "refusal", "void"]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a request is judged by.

    Parameters
    ----------
    run_id
        ``spark.app.id`` of this run.
    unsupported
        Why no executor of this application can be replaced, or "".
    drain_id
        The drain that is carried out, or "".
    registered
        Ids of the executors that have registered.
    pods
        The executors' pods by executor id.
    objection
        What speaks against a new executor at the destination: a node that takes no pods, labels that the application itself wants to be
        others, claims of volumes that Spark waits for; or "".
    """

    run_id: str
    unsupported: str = ""
    drain_id: str = ""
    registered: frozenset[str] = frozenset()
    pods: Mapping[str, ExecutorPod] = field(default_factory=dict)
    objection: str = ""


def void(request: PlacementRequest, run_id: str) -> str:
    """Return why a request is a bad one whatever the executors are, or ""."""
    try:
        request.check()
    except UnsupportedDestinationError as error:
        return str(error)
    if request.run_id not in (None, run_id):
        return f"it was meant for run {request.run_id}, and run {run_id} has taken its place"
    return "it was withdrawn before it was begun" if request.withdrawn else ""


def refusal(request: PlacementRequest, seen: Seen) -> str:
    """Return why a request is a bad one, or ""."""
    if why := void(request, seen.run_id):
        return why
    if seen.unsupported:
        return f"executors of this application cannot be replaced one by one: {seen.unsupported}"
    if seen.drain_id:
        return f"drain {seen.drain_id} is under way, and comes first; ask again if the application runs on after it"
    pod = seen.pods.get(request.executor_id)
    if request.executor_id not in seen.registered or pod is None:
        known = ", ".join(sorted(seen.registered, key=lambda item: (len(item), item))) or "none"
        return f"there is no executor {request.executor_id} in run {seen.run_id}: there are {known}"
    if request.destination_host == pod.node:
        return f"executor {request.executor_id} is on node {pod.node} already; to restart it there, give {Destination.LAST_SEEN}"
    return seen.objection


def asked_for(wanted: int, others: Collection[str], source: str, *, forced: bool) -> int:
    """Return how many executors Spark has to be asked for so that it makes one for a placement, and keeps it.

    Parameters
    ----------
    wanted
        How many Spark wants by itself: under dynamic allocation also fewer than there are, since idle ones stay for a while.
    others
        Ids of all executors but the new one, with dynamic allocation.
    source
        Id of the executor that is replaced.
    forced
        Whether it ends before the new one comes, which then takes its place, and is none more.
    """
    if forced:
        return max(wanted, len(set(others) - {source}) + 1)
    return max(wanted, len(others)) + 1
