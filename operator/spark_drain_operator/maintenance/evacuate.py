"""``python -m spark_drain_operator evacuate NODE``."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence

from spark_drain_store.kube_client import ApiError, ApiUnavailableError, KubeClient
from spark_drain_store.one_line import one_line

from spark_drain_operator.clock import later, now
from spark_drain_operator.maintenance.clearing import Clearing, time_given
from spark_drain_operator.maintenance.evacuation import Evacuation, named
from spark_drain_operator.maintenance.objects import NODE_LABEL, OPT_IN
from spark_drain_operator.storage import Cluster
from spark_drain_operator.storage.nodes import Node

__all__ = ["Command", "main", "node_of", "seconds_of"]

_POLL_SECONDS = 2.0
_UNITS = {"s": 1, "m": 60, "h": 3600}
_COST = "An eviction costs each executor's application a failed batch, and each driver's its run"


def seconds_of(text: str) -> int:
    """Read a duration: ``90s``, ``30m`` or ``2h``; raises `argparse.ArgumentTypeError` for another form, also for a number without unit."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smh])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 90s, 30m or 2h")
    return int(found[1]) * _UNITS[found[2]]


def node_of(text: str) -> str:
    """Read the name of a node; raises `argparse.ArgumentTypeError` for what is none."""
    if re.fullmatch(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a node: see kubectl get nodes")
    return text


class Command:
    """Clears one node until nothing can be waited for any more.

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
        self._nodes, self._node, self._node_uid = cluster.nodes, node, node_uid
        self._say = say
        self._evacuation = Evacuation(cluster, at_once, lambda told: say(told.message), selector=f"{NODE_LABEL}={node_uid}")

    def run(self, seconds: int) -> bool:
        """Move what is there; return whether the node is clear."""
        clearing = Clearing(self._node, self._node_uid, later(now(), seconds))
        while True:
            try:
                clear = self._look(clearing)
            except ApiUnavailableError as error:
                if not clearing.seconds_left(now()):
                    raise
                self._say(f"{error}; it is asked again")
                clear = None
            if clear is not None:
                return clear
            time.sleep(_POLL_SECONDS)

    def _look(self, clearing: Clearing) -> bool | None:
        """Do what is to be done next; return whether the node is clear, None while that is waited for."""
        node = self._nodes.read(self._node)
        if node is None or node.uid != self._node_uid or not node.cordoned:
            return self._give_up(node)
        look = self._evacuation.look([clearing])
        if not look.pods:
            self._say(f"node {self._node} is clear of Spark's pods")
            return True
        if look.decision.over or clearing.until <= now():
            for attempt in look.attempts:
                if not attempt.finished:
                    self._say(f"{attempt.kind} {attempt.name}: has not ended: {attempt.message or 'no operator has looked at it'}")
            names = ", ".join(named(pod) for pod in look.pods)
            self._say(f"node {self._node} is not clear: {names}. {_COST}")
            return False
        return None

    def _give_up(self, node: Node | None) -> bool:
        """Say what has become of the node meanwhile; return whether that has cleared it."""
        deleted = node is None or node.uid != self._node_uid
        if not deleted:
            self._say(f"node {self._node} is not cordoned any more: nothing else is moved off it; what was begun goes on")
            return False
        pods = self._nodes.spark_pods(self._node, self._node_uid)
        another = "" if node is None else "; there is another node of that name: run the same command again to clear that one"
        left = f"; on it, as far as the API server knows: {', '.join(map(named, pods))}" if pods else ""
        self._say(f"node {self._node} was deleted{left}{another}")
        return not pods


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
        help="such as 90s, 30m or 2h; shortly before, executors are decommissioned and a driver is stopped in mid-batch; default 30m",
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
        node = cluster.nodes.read(options.node)
        if node is None:
            parser.error(f"there is no node {options.node!r}: see kubectl get nodes")
        cluster.nodes.cordon(options.node, time_given(options.within, now()))
        _say(f"node {options.node} is cordoned")
        clear = Command(cluster, options.node, node.uid, options.at_once, _say).run(options.within)
    except (ApiError, ApiUnavailableError) as error:
        denied = isinstance(error, ApiError) and error.status == 403
        way_out = "the rights that this needs are in examples/nodes/rights.yaml" if denied else "run the same command again to go on"
        print(f"error: {error}; {way_out}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        _say("interrupted: what was begun goes on; run the same command again to go on")
        return 130
    return 0 if clear else 1


def _say(line: str) -> None:
    print(one_line(line), flush=True)
