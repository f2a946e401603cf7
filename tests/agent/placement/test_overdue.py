"""Executors whose time is over are ended only while that is asked for."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from spark_drain_agent.clock import utc_now
from spark_drain_agent.placement.handler import PlacementHandler
from spark_drain_agent.placement.overdue import Overdue
from spark_drain_agent.spark_internals.executor_pods import ExecutorPod, ExecutorPods
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_store import Channel
from spark_drain_store.placements import delete_placement_request, write_placement_request
from spark_drain_store.topics import PLACEMENT

_SOON = timedelta(seconds=2)


class Pods:
    """An application with one executor; Spark makes as many pods as it is asked for, and none of them finds a node."""

    unsupported = unusable = staticmethod(str)
    template = node_selector = confs = staticmethod(dict[str, Any])
    most_with_claims = None
    template_path = None
    decommissions = True
    dynamic_allocation = SimpleNamespace(enabled=False)

    def __init__(self) -> None:
        self.target = 1
        self.placement_id = ""
        self.decommissioned: list[str] = []

    def use_template(self, path: Path | None) -> None:
        """Do nothing: that pods are bound changes nothing here."""

    def registered(self) -> set[str]:
        return {"1"} - set(self.decommissioned)

    active = registered

    def pods(self) -> dict[str, ExecutorPod]:
        found = {"1": ExecutorPod(executor_id="1", name="app-1", node="node-1")}
        if self.target > 1:
            found["2"] = ExecutorPod(executor_id="2", name="app-2", phase="Pending", placement_id=self.placement_id)
        return found

    def like(self, _: ExecutorPod) -> None:
        """Return nothing that the API server could be asked for."""

    def delete(self, pod: ExecutorPod) -> None:
        """Do nothing: what is not asked for any more is gone."""

    def busy(self, _: str) -> bool:
        return False

    def decommission(self, executor_id: str) -> bool:
        self.decommissioned.append(executor_id)
        return True


def test_a_request_that_is_removed_shortly_before_its_time_is_over_ends_no_executor() -> None:
    channel, pods = Channel.in_memory().about(PLACEMENT), Pods()
    internals = cast(SparkInternals, SimpleNamespace(stopped=False))
    handler = PlacementHandler(internals, channel, "spark-1", str, list)
    pods.placement_id = write_placement_request(channel, "1", "ANY_OTHER", decommission_at=utc_now() + _SOON)
    look = pods.pods

    def pods_then_removed() -> dict[str, ExecutorPod]:
        found = look()
        if "2" in found and channel.requests.read().entries:
            delete_placement_request(channel, pods.placement_id)
            handler._requests = {}
        return found

    cast(Any, pods).pods = pods_then_removed
    with handler._lock:
        handler._working = True  # this thread does the work
    handler.consider(channel.requests.read())
    handler._answer(pods.placement_id, cast(ExecutorPods, pods), Overdue(cast(ExecutorPods, pods), handler._respond))
    assert pods.decommissioned == []
