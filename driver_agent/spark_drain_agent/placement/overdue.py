"""Executors whose time is over before a new one is there: they are ended all together, whatever placement is under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_drain_store.codec import format_time
from spark_drain_store.placement_messages import PlacementRequest, PlacementResponse, PlacementStatus

from spark_drain_agent.clock import utc_now
from spark_drain_agent.milestones import reached
from spark_drain_agent.placement.stop import Stop
from spark_drain_agent.spark_internals.executor_pods import ExecutorPods

__all__ = ["Overdue", "is_due"]


def is_due(request: PlacementRequest) -> bool:
    """Return whether the executor is to be ended even without a new one."""
    return request.decommission_at is not None and request.decommission_at <= utc_now()


@dataclass(frozen=True)
class _Ending:
    request: PlacementRequest
    node: str
    stop: Stop


class Overdue:
    """The executors that are ended at the time that their request names.

    Parameters
    ----------
    pods
        The application's executors.
    respond
        Called with each new response, which it completes and stores.
    """

    def __init__(self, pods: ExecutorPods, respond: Callable[[PlacementResponse], None]) -> None:
        self._pods = pods
        self._respond = respond
        self._ending: dict[str, _Ending] = {}

    def __contains__(self, placement_id: str) -> bool:
        """Whether its executor is being ended, and has not gone."""
        return placement_id in self._ending

    def end(self, requests: Sequence[PlacementRequest]) -> None:
        """Decommission the executors of these requests, which were not refused; Spark makes others in their place."""
        if not requests:
            return
        nodes = {key: pod.node for key, pod in self._pods.pods().items()}
        for request in requests:
            self._pods.decommission(request.executor_id)
            ending = _Ending(request, nodes.get(request.executor_id, ""), Stop(self._pods, request.executor_id))
            self._ending[request.placement_id] = ending
            told = f"executor {request.executor_id} on {ending.node} is decommissioned: its time is over, and no new one is there"
            self._respond(_response(ending, PlacementStatus.IN_PROGRESS, told))
            reached("placement-overdue")

    def look(self) -> set[str]:
        """Say which have gone, and return the placements that have their last answer by that."""
        answered = set()
        for key, ending in list(self._ending.items()):
            over = ending.stop.over()
            if over is None:
                continue
            del self._ending[key]
            assert ending.request.decommission_at is not None
            told = (
                f"executor {ending.request.executor_id} on {ending.node} was decommissioned at "
                f"{format_time(ending.request.decommission_at)}, the time that was given, before a new one was there; "
                + ("Spark makes another one, which may run on any node, if it needs as many" if over else "but it does not end")
            )
            self._respond(_response(ending, PlacementStatus.FAILED, told))
            answered.add(key)
        return answered


def _response(ending: _Ending, status: PlacementStatus, message: str) -> PlacementResponse:
    return PlacementResponse(
        placement_id=ending.request.placement_id,
        status=status,
        updated_at=utc_now(),
        executor_id=ending.request.executor_id,
        destination_host=ending.request.destination_host,
        source_node=ending.node,
        decommissioned=True,
        message=message,
    )
