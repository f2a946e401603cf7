"""What to do next for a node that is to be cleared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from spark_drain_operator.clock import later
from spark_drain_operator.storage.nodes import PodOnNode, Role

__all__ = ["ATTEMPTS", "Attempt", "Decision", "decide"]

ATTEMPTS = 3
"""How often a pod is tried to be moved."""
_RETRY_SECONDS = 30
"""Between two attempts: another drain may be in the way, or the pod not started yet."""


@dataclass(frozen=True)
class Attempt:
    """A placement or drain that was created to move a pod.

    Parameters
    ----------
    namespace, name, kind
        Which object.
    application, pod_uid
        What it moves.
    finished, succeeded, message, completion_time
        How and when it ended, if it has.
    node_uid
        Of the node that the pod was to leave.
    since
        Since when the node was to be cleared, where that was noted.
    number
        Of the attempt, from 1; 0 where its name tells none.
    earlier
        Whether it had ended before the clearing of the node began, and what was in the way may be gone since.
    by_force
        Whether it has ended the pod because there was no time left to move it.
    """

    namespace: str
    name: str
    kind: str
    application: str
    pod_uid: str
    finished: bool = False
    succeeded: bool = False
    message: str = ""
    completion_time: datetime | None = None
    node_uid: str = ""
    since: datetime | None = None
    number: int = 0
    earlier: bool = False
    by_force: bool = False

    @property
    def pod(self) -> tuple[str, str, str]:
        """Namespace, application and uid of what it moves."""
        return self.namespace, self.application, self.pod_uid

    @property
    def restarts(self) -> bool:
        """Whether it restarts its application."""
        return self.kind == "PipelineDrain"


@dataclass(frozen=True)
class Decision:
    """What one look has come to.

    Parameters
    ----------
    start
        Pods to move now, each with the number of the attempt, from 1.
    left_alone
        Pods of applications that have not opted in.
    came_back
        Drivers that were restarted, and started on the node again.
    stuck
        Pods that nothing more is done for: tried in vain, or the time of their node is over.
    over
        Whether nothing is left that could be waited for.
    """

    start: tuple[tuple[PodOnNode, int], ...]
    left_alone: tuple[PodOnNode, ...]
    came_back: tuple[PodOnNode, ...]
    stuck: tuple[PodOnNode, ...]
    over: bool


def decide(
    pods: Sequence[PodOnNode],
    attempts: Iterable[Attempt],
    opted_in: Set[tuple[str, str]],
    *,
    at_once: int,
    now: datetime,
    late: Set[str] = frozenset(),
    urgent: Set[str] = frozenset(),
    drained: Set[PodOnNode] = frozenset(),
) -> Decision:
    """Return what to do next.

    A driver takes its executors along: its application is restarted as a whole. Executors of another driver are asked for all at once,
    and the application's agent carries one out after the other.

    Parameters
    ----------
    pods
        Spark's pods on the nodes that are to be cleared.
    attempts
        What was created so far, also for pods that have gone, and for other nodes.
    opted_in
        Namespace and name of the applications that may be touched.
    at_once
        How many applications may be under way at the same time, as long as their pods are there.
    now
        Present time.
    late
        Uids of nodes whose time is over: nothing is begun for them.
    urgent
        Uids of nodes that have so little time that ``at_once`` does not hold for them; what was tried in vain is tried once more, since
        such an attempt ends with an executor's decommissioning or a stop in mid-batch.
    drained
        Pods of applications that somebody else drains: that comes first, and moves nothing in vain.
    """
    known = list(attempts)
    there = {(pod.namespace, pod.application, pod.uid) for pod in pods}
    # What is said to move a pod that is not there takes nobody's place: whoever may create drains can say so.
    busy = {item.pod[:2] for item in known if not item.finished and item.pod in there}
    leaving = {item.pod[:2] for item in known if item.restarts and not item.finished}
    restarting = {(pod.namespace, pod.application) for pod in pods if pod.role is Role.DRIVER}
    restarted = {
        (item.namespace, item.application, item.node_uid, item.pod_uid)
        for item in known
        if item.restarts and item.finished and not item.earlier
    }
    start: list[tuple[PodOnNode, int]] = []
    left_alone: list[PodOnNode] = []
    came_back: list[PodOnNode] = []
    stuck: list[PodOnNode] = []
    waiting = False
    for pod in sorted(pods, key=lambda item: (item.namespace, item.application, item.role, item.name)):
        application = (pod.namespace, pod.application)
        own = [item for item in known if item.pod == (*application, pod.uid)]
        tried = [item for item in own if not item.earlier]
        if application not in opted_in:
            left_alone.append(pod)
        elif pod.role is Role.EXECUTOR and application in leaving:
            waiting = True  # as long as its driver is being stopped, on whichever node
        elif pod.role is Role.EXECUTOR and application in restarting:
            continue  # it goes, or stays, with its driver
        elif pod.role is Role.DRIVER and any(
            restart[:3] == (*application, pod.node_uid) and restart[3] != pod.uid for restart in restarted
        ):
            came_back.append(pod)
        elif pod.node_uid in late:
            stuck.append(pod)
        elif (
            pod.terminating or any(not item.finished or item.succeeded for item in tried) or (pod in drained and pod.node_uid not in urgent)
        ):
            waiting = True
        elif len(tried) >= ATTEMPTS + (pod.node_uid in urgent):
            stuck.append(pod)
        elif any(item.completion_time is not None and now < later(item.completion_time, _RETRY_SECONDS) for item in tried):
            waiting = True
        elif application in busy or len(busy) < at_once or pod.node_uid in urgent:
            busy.add(application)
            start.append((pod, max([len(own), *(item.number for item in own)]) + 1))  # those before may have been deleted
        else:
            waiting = True
    return Decision(tuple(start), tuple(left_alone), tuple(came_back), tuple(stuck), over=not start and not waiting)
