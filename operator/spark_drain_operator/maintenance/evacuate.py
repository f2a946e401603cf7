"""``python -m spark_drain_operator evacuate NODE``."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from spark_drain_store.kube_client import ApiError, ApiUnavailableError, KubeClient

from spark_drain_operator.clock import now
from spark_drain_operator.kinds.drain.resource import RESOURCE as DRAINS
from spark_drain_operator.kinds.placement.resource import RESOURCE as PLACEMENTS
from spark_drain_operator.maintenance.decide import Attempt, decide
from spark_drain_operator.maintenance.objects import NODE_LABEL, attempt_of, object_for
from spark_drain_operator.one_line import one_line
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.nodes import PodOnNode
from spark_drain_operator.storage.own_objects import GROUP

__all__ = ["OPT_IN", "Evacuation", "main", "node_of", "seconds_of"]

OPT_IN = f"{GROUP}/evacuate"
"""Annotation of a SparkApplication: with "true" its driver and executors may be moved off a node that is cleared."""

_POLL_SECONDS = 2.0
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
_COST = "An eviction costs each executor's application a failed batch, and each driver's its run"
_API_VERSION, _PLURAL = "sparkoperator.k8s.io/v1beta2", "sparkapplications"


def seconds_of(text: str) -> int:
    """Read a duration: ``90``, ``90s``, ``30m`` or ``2h``; raises `argparse.ArgumentTypeError` for another form."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smh]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 90s, 30m or 2h")
    return int(found[1]) * _UNITS[found[2]]


def node_of(text: str) -> str:
    """Read the name of a node; raises `argparse.ArgumentTypeError` for what is none."""
    if re.fullmatch(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a node: see kubectl get nodes")
    return text


class Evacuation:
    """Clears one node of the pods of SparkApplications that have opted in.

    What it has created is found again by its labels: a command that was interrupted goes on when it is started again.

    Parameters
    ----------
    cluster
        The API server, with the rights of whoever calls.
    node, node_uid
        Which node.
    at_once
        How many applications may be under way at the same time.
    say
        Takes each line of the story.
    """

    def __init__(self, cluster: Cluster, node: str, node_uid: str, at_once: int, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._node, self._node_uid = node, node_uid
        self._at_once = at_once
        self._say = say
        self._told: set[str] = set()
        self._earlier: set[tuple[str, str, str]] | None = None
        self._refused: list[Attempt] = []

    def run(self, seconds: int) -> bool:
        """Move what is there until nothing can be waited for any more; return whether the node is clear."""
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            try:
                clear = self._look(int(left))
            except ApiUnavailableError as error:
                if left <= 0:
                    raise
                self._say(f"{error}; it is asked again")
                clear = None
            if clear is not None:
                return clear
            time.sleep(_POLL_SECONDS)

    def _look(self, seconds_left: int) -> bool | None:
        """Do what is to be done next; return whether the node is clear, None while that is waited for."""
        pods = self._cluster.nodes.spark_pods(self._node)
        attempts = self._attempts()
        self._tell_ends(attempts)
        if not pods:
            self._say(f"node {self._node} is clear of Spark's pods")
            return True
        decision = decide(pods, [*attempts, *self._refused], self._opted_in(pods), at_once=self._at_once, now=now())
        for pod in decision.left_alone:
            self._tell(pod.uid, f'{_said(pod)}: left alone, SparkApplication {pod.application!r} has no annotation {OPT_IN}: "true"')
        for pod in decision.came_back:
            self._tell(pod.uid, f"{_said(pod)}: left alone, it was restarted and started on the node again: does it tolerate every taint?")
        if decision.over or seconds_left <= 0:
            for attempt in attempts:
                if not attempt.finished:
                    self._say(f"{attempt.kind} {attempt.name}: has not ended: {attempt.message or 'no operator has looked at it'}")
            names = ", ".join(_said(pod) for pod in pods)
            self._say(f"node {self._node} is not clear: {names}. {_COST}")
            return False
        for pod, number in decision.start:
            self._start(pod, number, seconds_left)
        return None

    def _start(self, pod: PodOnNode, number: int, seconds_left: int) -> None:
        body = object_for(pod, self._node_uid, number, seconds_left)
        resource = DRAINS if body["kind"] == DRAINS.kind else PLACEMENTS
        try:
            self._cluster.objects(resource).create(body)
        except ApiError as error:
            self._tell(f"refused {pod.uid}", f"{_said(pod)}: cannot be moved: {error}")
            refused = Attempt(pod.namespace, "", resource.kind, pod.application, pod.uid, finished=True, completion_time=now())
            self._refused.append(refused)
            return
        what = "its application is restarted" if resource is DRAINS else "another executor takes its place"
        self._say(f"{_said(pod)}: {what}, {body['kind']} {body['metadata']['name']}")

    def _attempts(self) -> list[Attempt]:
        label = f"{NODE_LABEL}={self._node_uid}"
        found = [attempt_of(kind, body) for kind in (DRAINS, PLACEMENTS) for body in self._cluster.objects(kind).labelled(label)]
        if self._earlier is None:
            self._earlier = {(item.kind, item.namespace, item.name) for item in found if item.finished}
        return [replace(item, earlier=(item.kind, item.namespace, item.name) in self._earlier) for item in found]

    def _opted_in(self, pods: Sequence[PodOnNode]) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        applications = {(pod.namespace, pod.application) for pod in pods}
        for namespace, name in applications:
            body = self._cluster.applications.get(_API_VERSION, _PLURAL, namespace, name)
            if body is not None and (body["metadata"].get("annotations") or {}).get(OPT_IN) == "true":
                found.add((namespace, name))
        return found

    def _tell_ends(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            if attempt.finished and not attempt.earlier:
                ended = "done" if attempt.succeeded else "failed"
                self._tell(
                    f"{attempt.namespace}/{attempt.kind}/{attempt.name}", f"{attempt.kind} {attempt.name}: {ended}: {attempt.message}"
                )

    def _tell(self, key: str, line: str) -> None:
        """Say something of an object once."""
        if key not in self._told:
            self._told.add(key)
            self._say(line)


def _said(pod: PodOnNode) -> str:
    return f"{pod.role} {pod.namespace}/{pod.name}"


def main(arguments: Sequence[str]) -> int:
    """Clear a node; return 0 where it is clear, 1 where it is not."""
    parser = argparse.ArgumentParser(
        prog="python -m spark_drain_operator evacuate",
        description=(
            "Cordon a node, and move the SparkApplications off it that have the annotation "
            f'{OPT_IN}: "true": executors by ExecutorPlacements, drivers by restarting their application at a batch boundary.'
        ),
    )
    parser.add_argument("node", metavar="NODE", type=node_of, help="name of the node")
    parser.add_argument(
        "--within",
        type=seconds_of,
        default="30m",
        metavar="TIME",
        help="such as 90s, 30m or 2h; a driver is stopped in mid-batch then; default 30m",
    )
    parser.add_argument("--at-once", type=int, default=5, metavar="N", help="applications under way at the same time; default 5")
    options = parser.parse_args(arguments)
    if options.at_once < 1:
        parser.error(f"--at-once must be at least 1, not {options.at_once}")
    try:
        cluster = Cluster.over(KubeClient.from_environment())
    except ApiUnavailableError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    try:
        uid = cluster.nodes.uid(options.node)
        if uid is None:
            parser.error(f"there is no node {options.node!r}: see kubectl get nodes")
        cluster.nodes.cordon(options.node)
        _say(f"node {options.node} is cordoned")
        clear = Evacuation(cluster, options.node, uid, options.at_once, _say).run(options.within)
    except (ApiError, ApiUnavailableError) as error:
        print(f"error: {error}; run the same command again to go on", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        _say("interrupted: what was begun goes on; run the same command again to go on")
        return 130
    return 0 if clear else 1


def _say(line: str) -> None:
    print(one_line(line), flush=True)
