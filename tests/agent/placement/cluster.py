"""An application whose executors are pods of a real API server and scheduler, under load."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from spark_drain_store import Channel
from spark_drain_store.channel import config_map_names
from spark_drain_store.configmap import ConfigMapStore
from spark_drain_store.placement_messages import PlacementStatus
from spark_drain_store.placements import read_placement_response, write_placement_request
from spark_drain_store.topics import PLACEMENT

from tests.agent.harness import Drains, Driver, Feed, eventually, exactly, ids_in, newest
from tests.operator.process import OperatorProcess, without_proxy
from tests.operator.scripted_kubeflow import ScriptedApplication
from tests.support.apiserver import ApiServer, service_account
from tests.support.process_nodes import SCHEDULER, ProcessNode, ProcessNodes, process_nodes
from tests.support.waiting import meanwhile

__all__ = ["APPLICATION", "Placed", "other", "placed_on_three_nodes"]

APPLICATION = "app"
_SAMPLE_SECONDS = 0.2
_NOBODY = "4711"
"""No executor: who asks for it is told which there are."""


class InCluster(Drains):
    """The ``spark_drain_store`` command on the application's ConfigMaps."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self.location = f"configmap:{namespace}/{APPLICATION}"
        self._environment = server.environment()

    def _command(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "spark_drain_store", "--metadata-store", self.location, "drain", *arguments]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, check=True).stdout.strip()


class Placed:
    """The application, its executors' pods and its placements."""

    def __init__(self, server: ApiServer, nodes: ProcessNodes, namespace: str, base: Path, start: Callable[[], Driver]) -> None:
        self.server = server
        self.client = server.client
        self.nodes = nodes
        self.namespace = namespace
        self.base = base
        self._start = start
        self.driver = start()
        self.feed = Feed(base / "input")
        self.drains = InCluster(server, namespace)
        requests, reports = (ConfigMapStore(server.client, namespace, name) for name in config_map_names(APPLICATION))
        self.channel = Channel.over(requests, reports, topic=PLACEMENT)
        self.fewest = 99
        """The smallest number of running executor pods since the last `watching` began."""

    def pods(self) -> dict[str, dict[str, Any]]:
        """Return the executors' pods by executor id."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        listed = self.client.request("GET", path, query={"labelSelector": "spark-role=executor"})["items"]
        return {pod["metadata"]["labels"]["spark-exec-id"]: pod for pod in listed}

    def running(self) -> dict[str, str]:
        """Return the node of each running executor by its id."""
        return {key: pod["spec"]["nodeName"] for key, pod in self.pods().items() if pod["status"]["phase"] == "Running"}

    def alone(self, count: int = 2) -> dict[str, str]:
        """Wait until there are so many executors and no other pod, and return their nodes."""

        def look() -> dict[str, str] | None:
            pods, running = self.pods(), self.running()
            return running if len(running) == len(pods) == count else None

        return eventually(look, f"{count} executors and no other pod", alive=self.driver)

    def gone(self, *executors: str) -> None:
        """Wait until the pods of executors that Spark does not know any more have ended, which takes a moment longer."""
        eventually(lambda: not {*executors} & self.running().keys(), f"executors {', '.join(executors)} to end", alive=self.driver)

    def settled(self, count: int = 2) -> dict[str, str]:
        """Wait until these are also all that have registered with the driver, and return their nodes."""

        def look() -> dict[str, str] | None:
            alone = self.alone(count)
            return alone if self._registered() == alone.keys() else None

        return eventually(look, f"{count} executors that have registered", alive=self.driver)

    def _registered(self) -> set[str]:
        refused = self.reaches(self.request(_NOBODY, "LAST_SEEN"), PlacementStatus.BAD_REQUEST)
        return set(re.findall(r"\d+", refused.message.rpartition(": there are ")[2]))

    def request(self, executor_id: str, destination: str, **options: Any) -> str:
        """Request a placement; returns its id."""
        return write_placement_request(self.channel, executor_id, destination, **options)

    def response(self, placement_id: str) -> Any:
        """Return a placement's response."""
        return read_placement_response(self.channel, placement_id)

    @property
    def run_id(self) -> str:
        """The application's run."""
        return str(next(iter(self.pods().values()))["metadata"]["labels"]["spark-app-selector"])

    def reaches(self, placement_id: str, *statuses: PlacementStatus) -> Any:
        """Wait until a placement has one of some statuses, and return the response."""

        def look() -> Any:
            response = self.response(placement_id)
            if response is not None and response.status in statuses:
                return response
            assert response is None or not response.status.finished, response
            return None

        return eventually(look, f"placement {placement_id} to be {' or '.join(statuses)}", 180, self.driver)

    @property
    def application(self) -> ScriptedApplication:
        """The SparkApplication; it stays, since with it the ConfigMaps would go that it owns."""
        application = ScriptedApplication(self.client, self.namespace, APPLICATION)
        return application if application.exists else application.create()

    @contextmanager
    def operated(self, *options: str) -> Iterator[None]:
        """Run an operator with these options, and have the driver's pod and SparkApplication that it looks at, while the block lasts."""
        application = self.application
        application.submit(self.run_id)
        application.run_pod(f"{APPLICATION}-driver")
        application.set_state("RUNNING")
        log = self.base / f"operator-{time.monotonic_ns()}.log"
        operator = OperatorProcess(without_proxy(self.server.environment()), self.namespace, log, *options)
        operator.start()
        try:
            yield
        finally:
            assert operator.stop() == 0, operator.log()[-4000:]
            application.end_pod(f"{APPLICATION}-driver")

    def lose_driver(self) -> None:
        """Kill the driver, remove its executors as Kubernetes does with what a driver's pod owns, and start the next run."""
        for child in self.driver.kill():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self.driver.wait()
        self.client.request("DELETE", f"/api/v1/namespaces/{self.namespace}/pods", query={"labelSelector": "spark-role=executor"})
        eventually(lambda: not self.pods(), "the old run's executors to end")
        self.driver = self._start()
        eventually(self.running, "an executor of the next run", alive=self.driver)

    @contextmanager
    def without_rights(self) -> Iterator[None]:
        """Have the API server refuse everything that the driver asks for, while the block lasts."""
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.namespace}/rolebindings"
        binding = self.client.request("GET", f"{path}/spark")
        self.client.request("DELETE", f"{path}/spark")
        try:
            yield
        finally:
            binding["metadata"] = {"name": "spark"}
            self.client.request("POST", path, body=binding)

    @contextmanager
    def full_quota(self) -> Iterator[None]:
        """Have a ResourceQuota without room for one more pod, while the block lasts."""
        path, hard = f"/api/v1/namespaces/{self.namespace}/resourcequotas", {"pods": str(len(self.pods()))}
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}, "spec": {"hard": hard}}
        self.client.request("POST", path, body=quota)
        try:
            eventually(lambda: (self.client.request("GET", f"{path}/full").get("status") or {}).get("used") == hard, "the quota to be full")
            yield
        finally:
            self.client.request("DELETE", f"{path}/full")

    def events(self, reason: str) -> list[str]:
        """Return what Events of the application with a reason say."""
        query = {"fieldSelector": f"involvedObject.name={APPLICATION},reason={reason}"}
        items = self.client.request("GET", f"/api/v1/namespaces/{self.namespace}/events", query=query)["items"]
        return [str(item["message"]) for item in items]

    def batches(self, more: int) -> None:
        """Feed so many files, and wait until each was committed."""
        self.feed.add(more)
        last = self.feed.files - 1
        eventually(lambda: newest(self.base / "checkpoint", "commits") >= last, f"batch {last}", alive=self.driver)

    def check_ledger(self) -> None:
        """Fail unless every input record came out exactly once, and no batch had failed."""
        eventually(lambda: len(ids_in(self.base / "out")) == len(self.feed.ids), "all records", alive=self.driver)
        assert ids_in(self.base / "out") == exactly(self.feed.ids)
        assert "MicroBatchExecution: Query" not in self.driver.log, self.driver.tail()
        assert self.driver.running

    @contextmanager
    def load(self) -> Iterator[None]:
        """Feed files, a batch at a time, and sample the number of executors, while the block lasts."""

        def feed() -> None:
            if newest(self.base / "checkpoint", "commits") >= self.feed.files - 1:
                self.feed.add()

        with self.watching(feed):
            yield

    @contextmanager
    def watching(self, beside: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Sample the number of executors, and do something else as often, while the block lasts."""
        self.fewest = len(self.running())

        def look() -> None:
            self.fewest = min(self.fewest, len(self.running()))
            beside()

        with meanwhile(look, _SAMPLE_SECONDS):
            yield


def _three_nodes() -> list[ProcessNode]:
    """Two nodes with room, and one without."""
    return [
        ProcessNode("node-1", "127.0.0.11", {"pool": "slow"}),
        ProcessNode("node-2", "127.0.0.12", {"pool": "fast"}),
        ProcessNode("node-full", "127.0.0.13", cores=0),
    ]


def other(node: str) -> str:
    """Return the other one of the two with room."""
    return {"node-1": "node-2", "node-2": "node-1"}[node]


@contextmanager
def placed_on_three_nodes(server: ApiServer, folder: Path, *, program: str = "placed.py", **confs: str) -> Iterator[Placed]:
    """Run an application with two executors on nodes of its own."""
    with (
        process_nodes(server, _three_nodes(), folder) as nodes,
        _placed_application(server, nodes, folder / "base", program, **confs) as application,
    ):
        yield application


@contextmanager
def _placed_application(server: ApiServer, nodes: ProcessNodes, base: Path, program: str, **confs: str) -> Iterator[Placed]:
    """Run an application with two executors, in a namespace of its own."""
    base.mkdir()
    namespace = f"placed-{uuid.uuid4().hex[:8]}"
    server.run_kubectl("create", "namespace", namespace)
    server.run_kubectl("create", "serviceaccount", "spark", "-n", namespace)
    server.run_kubectl("create", "rolebinding", "spark", "--clusterrole=edit", f"--serviceaccount={namespace}:spark", "-n", namespace)
    kubeconfig = service_account(server, namespace, "spark", base)
    url = yaml.safe_load(server.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    settings = {
        "spark.master": f"k8s://{url}",
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.container.image": "none",
        "spark.kubernetes.executor.scheduler.name": SCHEDULER,
        "spark.kubernetes.executor.request.cores": "1",
        "spark.kubernetes.executor.podNamePrefix": namespace,
        "spark.kubernetes.executor.label.sparkoperator.k8s.io/app-name": APPLICATION,
        "spark.kubernetes.allocation.batch.delay": "200ms",
        "spark.kubernetes.executor.listPollingInterval": "1s",
        "spark.executor.instances": "2",
        "spark.executor.memory": "512m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }

    def start() -> Driver:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KUBECONFIG", str(kubeconfig))
            return Driver(program, base, store=InCluster(server, namespace), confs=settings | confs)

    placed = Placed(server, nodes, namespace, base, start)
    try:
        placed.batches(1)
        yield placed
    finally:
        placed.channel.close()
        placed.driver.close()
        server.run_kubectl("delete", "namespace", namespace, "--wait=false")
