"""Clears nodes: one look at a time creates the placements and drains that are due, and tells what has become of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from spark_drain_store.kube_client import ApiError

from spark_drain_operator.applications.kubeflow import KubeflowAdapter
from spark_drain_operator.clock import now
from spark_drain_operator.kinds.drain.resource import RESOURCE as DRAINS
from spark_drain_operator.kinds.placement.resource import RESOURCE as PLACEMENTS
from spark_drain_operator.maintenance.clearing import Clearing
from spark_drain_operator.maintenance.decide import ATTEMPTS, Attempt, Decision, decide
from spark_drain_operator.maintenance.objects import NODE_LABEL, OPT_IN, attempt_of, in_the_way, object_for, reference_to
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.nodes import PodOnNode

__all__ = ["Evacuation", "Look", "Told", "application_of", "named", "opted_in"]


@dataclass(frozen=True)
class Told:
    """A sentence of the story.

    Parameters
    ----------
    namespace, application
        Whom it is about.
    reason
        One CamelCase word.
    message
        The sentence.
    warning
        Whether something has gone wrong.
    node_uid
        Of the node that is cleared.
    """

    namespace: str
    application: str
    reason: str
    message: str
    warning: bool = False
    node_uid: str = ""


@dataclass(frozen=True)
class Look:
    """What one look has found.

    Parameters
    ----------
    pods
        Spark's pods on the nodes.
    attempts
        What was created for them before.
    decision
        What was to be done.
    """

    pods: tuple[PodOnNode, ...]
    attempts: tuple[Attempt, ...]
    decision: Decision


class Evacuation:
    """Moves the pods of SparkApplications that have opted in off nodes.

    What it has created is found again by its labels: whoever was interrupted goes on when it is started again.

    Parameters
    ----------
    cluster
        The API server, with the rights of whoever calls.
    at_once
        How many applications may be under way at the same time.
    tell
        Takes each sentence of the story.
    selector
        Labels of what counts as under way.
    namespaces
        Returns where to look; the namespace "" means everywhere.
    urgent_seconds
        With less time left ``at_once`` does not hold.
    """

    def __init__(
        self,
        cluster: Cluster,
        at_once: int,
        tell: Callable[[Told], None],
        *,
        selector: str = NODE_LABEL,
        namespaces: Callable[[], Iterable[str]] = lambda: ("",),
        urgent_seconds: int = 0,
    ) -> None:
        self._cluster = cluster
        self._at_once, self._urgent_seconds = at_once, urgent_seconds
        self._tell = tell
        self._selector, self._namespaces = selector, namespaces
        self._told: set[tuple[str, str]] = set()
        self._earlier: dict[str, set[tuple[str, str, str]]] = {}
        self._active: set[tuple[str, str, str]] = set()
        self._refused: list[Attempt] = []

    @property
    def busy(self) -> bool:
        """Whether something was under way when it was looked at last."""
        return bool(self._active)

    def attempts(self) -> tuple[Attempt, ...]:
        """Return all that was created so far."""
        return tuple(
            attempt_of(kind, body)
            for kind in (DRAINS, PLACEMENTS)
            for body in self._cluster.objects(kind).labelled(self._selector, self._namespaces())
        )

    def look(self, nodes: Sequence[Clearing]) -> Look:
        """Do what is to be done next."""
        time = now()
        by_uid = {node.uid: node for node in nodes}
        pods = tuple(pod for node in nodes for pod in self._cluster.nodes.spark_pods(node.node, node.uid, self._namespaces()))
        listed = self.attempts()
        self._tell_ends(listed, by_uid.keys(), {pod.uid for pod in pods})
        self._remember(by_uid.keys(), listed)
        attempts = tuple(self._judged(attempt, by_uid.get(attempt.node_uid)) for attempt in (*listed, *self._refused))
        decision, waits = self._decided(pods, attempts, nodes, time)
        for pod, drain in waits.items():
            self._say(pod, f"waits for {drain}", "EvacuationWaits", f"waits for PipelineDrain {drain} of its application")
        for pod in decision.left_alone:
            why = f'SparkApplication {pod.application!r} has no annotation {OPT_IN}: "true"'
            self._say(pod, "has not opted in", "NotEvacuated", f"left alone, {why}")
        for pod in decision.came_back:
            why = "it was restarted and started on the node again: does it tolerate every taint?"
            self._say(pod, "came back", "NotEvacuated", f"left alone, {why}", warning=True)
        for pod in decision.stuck:
            why = f"{ATTEMPTS} attempts have failed" if by_uid[pod.node_uid].until > time else "the time of its node is over"
            self._say(pod, "stuck", "NotEvacuated", f"not moved any more, {why}", warning=True)
        for pod, number in decision.start:
            self._start(pod, number, by_uid[pod.node_uid], time)
        return Look(pods, attempts, decision)

    def _decided(
        self, pods: Sequence[PodOnNode], attempts: Sequence[Attempt], nodes: Sequence[Clearing], time: datetime
    ) -> tuple[Decision, dict[PodOnNode, str]]:
        """Decide, and name somebody else's drains that are waited for: they are asked for only where a pod would be touched."""
        drained: dict[PodOnNode, str] = {}
        drains_of, opted = cache(self._drains_of), self._opted_in(pods)
        own = {(attempt.namespace, attempt.name) for attempt in attempts if attempt.restarts}
        late = {node.uid for node in nodes if node.until <= time}
        urgent = {node.uid for node in nodes if node.seconds_left(time) < self._urgent_seconds}

        def drain_before(pod: PodOnNode) -> str:
            meant = (drain for drain in drains_of(pod.namespace, pod.application) if in_the_way(drain, pod.role))
            names = (str(drain["metadata"]["name"]) for drain in meant)
            return next((name for name in names if (pod.namespace, name) not in own), "")

        while True:
            decision = decide(pods, attempts, opted, at_once=self._at_once, now=time, late=late, urgent=urgent, drained=drained.keys())
            found = {pod: name for pod, _ in decision.start if pod not in drained and (name := drain_before(pod))}
            if not found:
                return decision, {pod: name for pod, name in drained.items() if pod.node_uid not in urgent}
            drained |= found

    def _drains_of(self, namespace: str, application: str) -> list[dict[str, Any]]:
        listed = self._cluster.objects(DRAINS).all(namespace, {"fieldSelector": f"spec.applicationRef.name={application}"})
        return [body for body in listed if body["spec"]["applicationRef"].items() >= reference_to(application).items()]

    def _start(self, pod: PodOnNode, number: int, node: Clearing, time: datetime) -> None:
        left = node.seconds_left(time)
        body = object_for(pod, number, left, node.since)
        resource = DRAINS if body["kind"] == DRAINS.kind else PLACEMENTS
        name = str(body["metadata"]["name"])
        try:
            self._cluster.objects(resource).create(body)
        except ApiError as error:
            self._say(pod, f"refused {pod.uid}", "EvacuationRefused", f"cannot be moved: {error}", warning=True)
            refused = Attempt(
                pod.namespace, "", resource.kind, pod.application, pod.uid, finished=True, completion_time=time, node_uid=node.uid
            )
            self._refused.append(refused)
            return
        self._active.add((resource.kind, pod.namespace, name))
        what = "its application is restarted" if resource is DRAINS else "another executor takes its place"
        within = f" within the {left} s that are left" if left < self._urgent_seconds else ""
        self._say(pod, name, "EvacuationStarted", f"{what}{within}, {resource.kind} {name}")

    def _remember(self, nodes: Set[str], listed: Iterable[Attempt]) -> None:
        """Keep what has to be known of these nodes, and of no others."""
        ended = {(attempt.node_uid, _key(attempt)) for attempt in listed if attempt.finished}
        self._earlier = {uid: self._earlier.get(uid, {key for node, key in ended if node == uid}) for uid in nodes}
        self._told = {(uid, what) for uid, what in self._told if uid in nodes}
        self._refused = [attempt for attempt in self._refused if attempt.node_uid in nodes]

    def _judged(self, attempt: Attempt, node: Clearing | None) -> Attempt:
        """Return an attempt with whether it counts for a node that is cleared now."""
        if node is None or not attempt.finished:
            return attempt
        if node.since is None:
            return replace(attempt, earlier=_key(attempt) in self._earlier[node.uid])
        return replace(attempt, earlier=attempt.completion_time is not None and attempt.completion_time < node.since)

    def _opted_in(self, pods: Iterable[PodOnNode]) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for namespace, name in {(pod.namespace, pod.application) for pod in pods}:
            body = application_of(self._cluster, namespace, name)
            if body is not None and opted_in(body):
                found.add((namespace, name))
        return found

    def _tell_ends(self, listed: Sequence[Attempt], nodes: Set[str], there: Set[str]) -> None:
        """Tell what has become of that which was seen under way; where the pod has left its node in another way, it is no failure."""
        for attempt in listed:
            if attempt.finished and _key(attempt) in self._active:
                gone = attempt.node_uid in nodes and attempt.pod_uid not in there
                left = attempt.succeeded or (gone and not attempt.by_force)
                ended = "done" if attempt.succeeded else "the pod had left by itself" if left else "failed"
                message = f"{attempt.kind} {attempt.name}: {ended}: {attempt.message}"
                reason = "EvacuationSucceeded" if left else "EvacuationFailed"
                self._tell(Told(attempt.namespace, attempt.application, reason, message, warning=not left, node_uid=attempt.node_uid))
        self._active = {_key(attempt) for attempt in listed if not attempt.finished}

    def _say(self, pod: PodOnNode, what: str, reason: str, message: str, *, warning: bool = False) -> None:
        """Say something of an application on a node once."""
        key = (pod.node_uid, f"{pod.namespace}/{pod.application}: {what}")
        if key not in self._told:
            self._told.add(key)
            self._tell(Told(pod.namespace, pod.application, reason, f"{named(pod)}: {message}", warning, pod.node_uid))


def application_of(cluster: Cluster, namespace: str, name: str) -> dict[str, Any] | None:
    """Return a SparkApplication, None where there is none."""
    watched = KubeflowAdapter.watched
    return cluster.applications.get(watched.api_version, watched.plural, namespace, name)


def opted_in(body: Mapping[str, Any]) -> bool:
    """Whether a SparkApplication may be moved."""
    return (body["metadata"].get("annotations") or {}).get(OPT_IN) == "true"


def named(pod: PodOnNode) -> str:
    """Return what a pod is called in messages."""
    return f"{pod.role} {pod.namespace}/{pod.name}"


def _key(attempt: Attempt) -> tuple[str, str, str]:
    return attempt.kind, attempt.namespace, attempt.name
