"""Nodes are drained one after the other, with a job on them that is under load, and with all else that runs there.

`kubectl drain` is all that whoever maintains the nodes does. It evicts spark-drain's operator and kubeflow's as well, in the middle of what
they have to do for it, and Kafka, whose topics would be lost: the job reads files.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from demo import cluster as where
from demo import feeds, manifests
from demo.cluster import Cluster
from demo.errors import DemoError
from demo.job import EXECUTORS
from demo.kubectl import Kubectl
from devcluster.clusters import DEFAULT_NAME
from devcluster.paths import cluster_dir
from tests.agent.harness import APPS, Feed, eventually, exactly, ids_in, logged, newest, rows_in
from tests.support.apiserver import ROOT
from tests.support.waiting import meanwhile
from tools import spark_java
from tools.prerequisites import OTHER_CLUSTER

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.timeout(1800)]

APPLICATION = "windows"
AHEAD = 3
"""Files that wait to be read, at any time."""
DRAINED = 3
"""Nodes that `kubectl drain` clears; one more is cleared by the command."""
MOVES = DRAINED + 1
SECONDS = 600.0
_PERIOD_SECONDS = 0.5


@dataclass
class Job:
    """A windowed count on two executors, its input and what came out, in the folder that all nodes share.

    ``drivers`` are all that there were: when each was made, by uid.
    """

    kubectl: Kubectl
    base: Path
    inside: str
    drivers: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.base.mkdir()
        self.base.chmod(0o777)  # the pods are another user
        self.checkpoint = self.base / "checkpoint"
        self.feed = Feed(self.base / "input")
        shutil.copytree(APPS, self.base / "program" / APPS.relative_to(ROOT), ignore=shutil.ignore_patterns("__pycache__"))

    def start(self, image: str) -> None:
        """Start it, rather all of it on one node."""
        (written,) = manifests.load("application-v1")
        driver = {"spark-role": "driver", "sparkoperator.k8s.io/app-name": APPLICATION}
        near = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": driver}}
        change = {
            "metadata": {"name": APPLICATION, "annotations": {"sparkdrain.io/evacuate": "true"}},
            "spec": {
                "image": image,
                "arguments": [f"{self.inside}/program/{APPS.relative_to(ROOT)}/windows.py", self.inside],
                "sparkConf": {
                    "spark.kubernetes.driverEnv.PYTHONPATH": f"{self.inside}/program",
                    "spark.driver.extraJavaOptions": spark_java.QUICK,
                    "spark.executor.extraJavaOptions": spark_java.QUICK,
                },
                "executor": {
                    "affinity": {
                        "podAntiAffinity": None,
                        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": near}]},
                    }
                },
            },
        }
        self.kubectl.apply(*manifests.load("rights"), manifests.merged(written, change))

    def pods(self, role: str) -> list[dict[str, Any]]:
        """Return those of its pods that run and are not to end."""
        listed = self.kubectl.get("pods", f"--selector=spark-role={role},sparkoperator.k8s.io/app-name={APPLICATION}")["items"]
        return [pod for pod in listed if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]]

    def driver_node(self) -> str:
        """Wait until its driver's pod runs, and return the node; its query may not have started yet."""
        (driver,) = eventually(lambda: self.pods("driver"), "a driver", SECONDS)
        return str(driver["spec"]["nodeName"])

    def loaded_node(self) -> str:
        """Wait until it makes batches with all its executors, and return the node of the driver."""
        begun = newest(self.checkpoint, "commits")
        eventually(lambda: len(self.pods("executor")) == EXECUTORS, "both executors", SECONDS)
        eventually(lambda: newest(self.checkpoint, "commits") >= begun + AHEAD, "batches", SECONDS)
        return self.driver_node()

    @contextmanager
    def load(self) -> Iterator[None]:
        """Write files so that some wait at any time, and note the drivers, while the block lasts."""

        def look() -> None:
            if self.unread() < AHEAD:
                self.feed.add()
            with suppress(DemoError):  # an API server that is busy for a moment
                for pod in self.pods("driver"):
                    self.drivers[pod["metadata"]["uid"]] = _seconds(pod["metadata"]["creationTimestamp"])

        with meanwhile(look, _PERIOD_SECONDS):
            yield

    def unread(self) -> int:
        """Return how many files no batch was planned for; Spark's log of them has an entry for each, the tenth ones by another name."""
        planned = (int(path.stem) for path in (self.checkpoint / "sources" / "0").glob("[0-9]*"))
        return self.feed.files - 1 - max(planned, default=-1)

    def read_all(self) -> None:
        """Wait until all that was written is read and committed."""

        def done() -> bool:
            return not self.unread() and newest(self.checkpoint, "commits") == newest(self.checkpoint, "offsets")

        eventually(done, "all files are read", SECONDS)

    def cut_batches(self) -> list[int]:
        """Return the batches that one driver has begun and another one has ended."""
        folders = self.checkpoint / "offsets", self.checkpoint / "commits"
        times = {number: [(folder / str(number)).stat().st_mtime for folder in folders] for number in logged(self.checkpoint, "commits")}
        return [number for number, (begun, ended) in times.items() if any(begun < made <= ended for made in self.drivers.values())]


def _seconds(time_: str) -> float:
    return datetime.fromisoformat(time_).timestamp()


@dataclass
class Maintenance:
    """What is left to be looked at: nodes in the order in which the driver was on them, and what remained on each when it was drained.

    ``said`` is what the command has printed.
    """

    job: Job
    nodes: list[str] = field(default_factory=list)
    left: list[list[str]] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    panes: int = 0
    drains: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    said: str = ""


def evacuate(maintenance: Maintenance, node: str) -> None:
    """Clear a node by the command, while the operator watches nodes, too; it stays cordoned."""
    command = [sys.executable, "-m", "spark_drain_operator", "evacuate", node, "--within", f"{SECONDS:.0f}s"]
    environment = dict(maintenance.job.kubectl.environment)
    maintenance.said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    maintenance.nodes.append(node)


def drain(maintenance: Maintenance, node: str) -> None:
    """Drain a node, which stays cordoned."""
    kubectl = maintenance.job.kubectl
    begun = time.monotonic()
    kubectl.run("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={SECONDS:.0f}s")
    print(f"{node} was drained in {time.monotonic() - begun:.1f} s")
    there = kubectl.get("pods", "--all-namespaces", f"--field-selector=spec.nodeName={node}")["items"]
    maintenance.left.append([pod["metadata"]["name"] for pod in there if not _of_a_daemon_set(pod)])
    maintenance.nodes.append(node)


def _of_a_daemon_set(pod: dict[str, Any]) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", []))


@pytest.fixture(scope="module")
def watching(cluster: Cluster) -> Iterator[Cluster]:
    """Return the cluster with an operator that watches nodes; leave it as it was."""
    if os.environ.get(OTHER_CLUSTER):
        raise DemoError(f"whole nodes are drained: unset {OTHER_CLUSTER}, whose cluster is somebody else's")
    kubectl = cluster.kubectl(where.TEST_NAMESPACE)
    # What no controller would make again keeps `kubectl drain` from beginning: the tools of a demonstration that has ended.
    kubectl.run("delete", "pods", "tools", f"--namespace={where.DEMO_NAMESPACE}", "--ignore-not-found")
    cluster.install_operator("nodeWatch.enabled=true")
    try:
        yield cluster
    finally:
        kubectl.run("uncordon", "--selector=kubernetes.io/os=linux")
        cluster.install_operator()
        for item in kubectl.get("deployments,statefulsets", "--all-namespaces")["items"]:
            name, namespace = f"{item['kind']}/{item['metadata']['name']}", item["metadata"]["namespace"]
            kubectl.run("rollout", "status", name, f"--namespace={namespace}", "--timeout=300s")


@pytest.fixture(scope="module")
def maintained(watching: Cluster) -> Iterator[Maintenance]:
    kubectl = watching.kubectl(where.TEST_NAMESPACE)
    name = f"nodes-{uuid.uuid4().hex[:8]}"
    job = Job(kubectl, cluster_dir(DEFAULT_NAME) / "shared" / name, f"/mnt/shared/{name}")
    found = Maintenance(job)
    kubectl.run("delete", f"{feeds.DRAINS},{feeds.APPLICATIONS},jobs,pods,events", "--all", "--timeout=180s")
    job.feed.add(AHEAD)
    job.start(watching.example_image)
    try:
        with job.load():
            first = job.loaded_node()
            found.before = [pod["spec"]["nodeName"] for pod in job.pods("executor")]
            drain(found, first)
            second = job.driver_node()  # where its agent has not looked yet whether it is to stop
            kubectl.run("uncordon", first)
            drain(found, second)
            third = job.loaded_node()
            kubectl.run("uncordon", second)
            drain(found, third)
            fourth = job.loaded_node()
            kubectl.run("uncordon", third)
            evacuate(found, fourth)
            found.nodes.append(job.loaded_node())
        job.read_all()
        found.panes = sum(row["pane"] for row in rows_in(job.base / "out"))
        found.drains = kubectl.get(feeds.DRAINS)["items"]
        found.events = kubectl.get("events", f"--field-selector=involvedObject.name={APPLICATION}")["items"]
        (end,) = manifests.load("drain-v1")
        kubectl.apply(manifests.merged(end, {"metadata": {"name": "end"}, "spec": {"applicationRef": {"name": APPLICATION}}}))
        kubectl.run("wait", "pdr/end", "--for=condition=Finished", f"--timeout={SECONDS:.0f}s")
        yield found
    finally:
        kubectl.run("delete", f"{feeds.DRAINS},{feeds.APPLICATIONS}", "--all", "--timeout=180s")
        shutil.rmtree(job.base, ignore_errors=True)


def test_the_driver_left_each_node_and_so_did_all_else(maintained: Maintenance) -> None:
    first, second, *rest = maintained.nodes
    assert first != second
    assert rest == [first, second, first]
    assert maintained.left == [[]] * DRAINED


def test_the_command_says_that_the_node_is_clear(maintained: Maintenance) -> None:
    assert f"node {maintained.nodes[DRAINED]} is clear" in maintained.said


def test_the_first_node_had_executors_too(maintained: Maintenance) -> None:
    assert maintained.before == [maintained.nodes[0]] * EXECUTORS


def test_each_move_was_a_stop_at_a_batch_boundary_and_a_restart(maintained: Maintenance) -> None:
    told = [json.dumps(item["status"]) for item in maintained.drains]
    assert [(item["spec"]["mode"], item["status"]["phase"]) for item in maintained.drains] == [("Stop", "Drained")] * MOVES, told
    assert len(maintained.job.drivers) == MOVES + 1
    assert maintained.job.cut_batches() == []
    assert maintained.panes == 0, "no window was emitted for it"


def test_events_of_the_application_tell_it(maintained: Maintenance) -> None:
    told = {item["reason"]: item["message"] for item in maintained.events if item["reason"].startswith(("Evacuation", "NotEvac", "Budget"))}
    assert told.keys() == {"EvacuationStarted", "EvacuationSucceeded"}, told


def test_every_record_was_counted_once(maintained: Maintenance) -> None:
    job = maintained.job
    assert job.kubectl.get("pdr", "end")["status"]["phase"] == "Drained"
    assert ids_in(job.base / "out") == exactly(job.feed.ids)
