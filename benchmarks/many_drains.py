"""How long many drains at once take: python -m benchmarks.many_drains [--drains N ...] [--rounds N].

A real API server on this machine, an operator process, and one process that plays the rest: for each application an agent that acknowledges
and a second later reports that it is drained, and Spark's operator, which suspends it and ends its pods.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_drain_store import DrainState
from spark_drain_store.kube_client import KubeClient

from devcluster.api import control_plane
from tests.operator.scripted_agent import ScriptedAgent
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import DRAINS, ApiServer, drain_body, new_namespaces, served

THREADS = 8
_FLUSH_SECONDS = 1.0
_LOOK_SECONDS = 0.25
_MOST_SECONDS = 1800.0


@dataclass
class Stage:
    """One namespace with its applications, each with a driver and an executor."""

    client: KubeClient
    namespace: str
    applications: dict[str, ScriptedApplication] = field(default_factory=dict)
    agents: dict[str, ScriptedAgent] = field(default_factory=dict)
    acknowledged: dict[str, tuple[float, str]] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)
    suspended: set[str] = field(default_factory=set)

    def start(self, name: str) -> None:
        """Create one application and start it."""
        application = ScriptedApplication(self.client, self.namespace, name).create()
        uid = application.start(f"spark-{name}", executors=1)
        self.applications[name] = application
        self.agents[name] = ScriptedAgent(self.client, self.namespace, f"spark-{name}", uid, name)

    def ask(self, name: str) -> None:
        """Create the PipelineDrain of one application."""
        reference = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": name}
        self.client.request("POST", DRAINS.format(self.namespace), body=drain_body(name, applicationRef=reference))

    def ask_all(self, names: list[str]) -> None:
        """Create the PipelineDrains of all applications."""
        for name in names:
            self.ask(name)

    def acknowledge(self, name: str, drain_id: str) -> None:
        """Answer a request."""
        self.agents[name].report(drain_id, DrainState.ACKNOWLEDGED, executors_expected=1)
        self.acknowledged[name] = (time.monotonic(), drain_id)

    def report(self, name: str) -> None:
        """Say that an application is drained."""
        self.reported.add(name)
        self.agents[name].drained(self.acknowledged[name][1], executors="1")

    def suspend(self, name: str) -> None:
        """Do what Spark's operator does."""
        self.suspended.add(name)
        self.applications[name].set_state("SUSPENDED")
        self.applications[name].end_pods()

    def play(self, pool: ThreadPoolExecutor) -> bool:
        """Do what is due; return whether every drain has ended."""
        maps = self._items("/api/v1/namespaces/{}/configmaps", labelSelector="app.kubernetes.io/managed-by=spark-drain")
        due = []
        for body in maps:
            name = body["metadata"]["name"].removeprefix("sparkapplication-").removesuffix("-agent-requests")
            if name in self.agents and name not in self.acknowledged and body.get("data"):
                due.append(pool.submit(self.acknowledge, name, next(iter(body["data"])).partition(".")[2]))
        flushed = time.monotonic() - _FLUSH_SECONDS
        due += [
            pool.submit(self.report, name)
            for name, (at, _) in list(self.acknowledged.items())
            if at < flushed and name not in self.reported
        ]
        for body in self._items("/apis/sparkoperator.k8s.io/v1beta2/namespaces/{}/sparkapplications"):
            name = body["metadata"]["name"]
            if body["spec"].get("suspend") and name not in self.suspended:
                due.append(pool.submit(self.suspend, name))
        for each in due:
            each.result()
        drains = self._items(DRAINS, fieldSelector="status.phase=Drained")
        return len(drains) == len(self.applications)

    def _items(self, path: str, **query: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.client.request("GET", path.format(self.namespace), query=query).get("items") or []
        return items


def measured(server: ApiServer, drains: int, folder: Path) -> float:
    """Return the seconds from the first PipelineDrain's creation until the last is Drained."""
    with new_namespaces(server, 1) as (namespace,), ThreadPoolExecutor(THREADS) as pool:
        stage = Stage(server.client, namespace)
        names = [f"app-{number}" for number in range(drains)]
        list(pool.map(stage.start, names))
        command = [sys.executable, "-m", "spark_drain_operator", "--namespaces", namespace]
        with (folder / f"{namespace}.log").open("wb") as log:
            operator = subprocess.Popen(command, env=server.environment(), stdout=log, stderr=log)
        try:
            time.sleep(10)
            began = time.monotonic()
            asked = pool.submit(stage.ask_all, names)
            while not (stage.play(pool) and asked.done()):
                assert operator.poll() is None, log.name
                assert time.monotonic() - began < _MOST_SECONDS, f"{log.name}: not all drains have ended"
                time.sleep(_LOOK_SECONDS)
            asked.result()
            return time.monotonic() - began
        finally:
            operator.terminate()
            operator.wait(timeout=30)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drains", type=int, nargs="+", default=[100, 300, 1000], help="how many at once")
    parser.add_argument("--rounds", type=int, default=3, help="of each")
    arguments = parser.parse_args()
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]  # the API server is on loopback
    print("| drains at once | seconds, median (least-most) | milliseconds for each |\n|---|---|---|", flush=True)
    for drains in arguments.drains:
        found = []
        for _ in range(arguments.rounds):
            with (
                tempfile.TemporaryDirectory() as folder,
                control_plane() as plane,
                served(plane.kubeconfig, str(plane.kubectl), Path(folder)) as server,
            ):
                found.append(measured(server, drains, Path(folder)))
        median = statistics.median(found)
        print(f"| {drains:,} | {median:.1f} ({min(found):.1f}-{max(found):.1f}) | {1000 * median / drains:.0f} |", flush=True)


if __name__ == "__main__":
    main()
