"""Nodes whose containers are plain processes: the real API server, scheduler and Spark executors, without a container engine.

A pod that the scheduler binds to such a node is started as a process with the environment of its container, its status is written as a
kubelet does, and it is ended when the pod is deleted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark
import yaml
from spark_drain_store.kube_client import MERGE_PATCH, ApiError, ApiUnavailableError, KubeClient

from devcluster import gobuild
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually
from tools import spark_java

__all__ = ["SCHEDULER", "ProcessNode", "ProcessNodes", "process_nodes"]

SCHEDULER = "process-nodes"
"""The name of the scheduler, so that pods of other tests are left alone."""
_LOOK_SECONDS = 0.2
_HEARTBEAT_SECONDS = 8.0
_GRACE_SECONDS = 5.0


@dataclass
class ProcessNode:
    name: str
    address: str
    labels: dict[str, str] = field(default_factory=dict)
    cores: int = 3
    starts: bool = True
    """Whether pods that are bound to it are started; else they stay Pending, as on a node that cannot pull an image."""


class ProcessNodes:
    """The kubelets of all nodes, in one thread."""

    def __init__(self, client: KubeClient, nodes: list[ProcessNode], logs: Path) -> None:
        self.client = client
        self.nodes = {node.name: node for node in nodes}
        self._logs = logs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._uids: dict[str, str] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="process-nodes", daemon=True)

    def start(self) -> None:
        for node in self.nodes.values():
            body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": _labels(node)}}
            self.client.request("POST", "/api/v1/nodes", body=body)
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": node.name},
                "spec": {"holderIdentity": node.name, "leaseDurationSeconds": 40},
            }
            self.client.request("POST", f"{_LEASES}", body=lease)
        self._heartbeat()
        self._thread.start()

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()
        for process in self._processes.values():
            process.kill()
            process.wait()
        for name in self.nodes:
            for path in (f"/api/v1/nodes/{name}", f"{_LEASES}/{name}"):
                with suppress(ApiError):
                    self.client.request("DELETE", path)

    def cordon(self, name: str, *, on: bool = True) -> None:
        self.client.request("PATCH", f"/api/v1/nodes/{name}", body={"spec": {"unschedulable": on}}, content_type=MERGE_PATCH)

    @contextmanager
    def starting_nothing(self, name: str) -> Iterator[None]:
        self.nodes[name].starts = False
        try:
            yield
        finally:
            self.nodes[name].starts = True

    def kill(self, pod: str) -> None:
        """Kill a pod's process, as the kernel does when its memory is at an end."""
        self._processes[self._uids[pod]].kill()

    def freeze(self, pod: str) -> None:
        """Let a pod's process run no further, as a node does that is out of memory."""
        self._processes[self._uids[pod]].send_signal(signal.SIGSTOP)

    def _serve(self) -> None:
        beat = time.monotonic()
        while not self._stopped.wait(_LOOK_SECONDS):
            try:
                if time.monotonic() - beat > _HEARTBEAT_SECONDS:
                    beat = time.monotonic()
                    self._heartbeat()
                for pod in self.client.request("GET", "/api/v1/pods", query={"labelSelector": "spark-role=executor"})["items"]:
                    if pod["spec"].get("nodeName") in self.nodes:
                        self._serve_pod(pod)
            except (ApiError, ApiUnavailableError):
                continue  # it changed in between: look again

    def _heartbeat(self) -> None:
        now = datetime.now(UTC)
        for node in self.nodes.values():
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
            room = {"cpu": str(node.cores), "memory": "8Gi", "pods": "20", "ephemeral-storage": "10Gi"}
            status = {"conditions": [ready], "capacity": room, "allocatable": room}
            status["addresses"] = [{"type": "InternalIP", "address": node.address}]
            self.client.request("PATCH", f"/api/v1/nodes/{node.name}/status", body={"status": status}, content_type=MERGE_PATCH)
            renewed = {"spec": {"renewTime": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}"}}
            self.client.request("PATCH", f"{_LEASES}/{node.name}", body=renewed, content_type=MERGE_PATCH)

    def _serve_pod(self, pod: dict[str, Any]) -> None:
        name, uid, node = pod["metadata"]["name"], pod["metadata"]["uid"], self.nodes[pod["spec"]["nodeName"]]
        process = self._processes.get(uid)
        if pod["metadata"].get("deletionTimestamp"):
            if process is not None:
                process.terminate()
                try:
                    process.wait(_GRACE_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                self._processes.pop(uid)
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{name}"
            self.client.request("DELETE", path, query={"gracePeriodSeconds": "0"})
        elif process is None:
            if node.starts and pod["status"].get("phase") == "Pending":
                self._processes[uid], self._uids[name] = self._start(pod, node), uid
                self._report(pod, node, "Running", {"running": {"startedAt": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}})
        elif process.poll() is not None and pod["status"].get("phase") == "Running":
            self._report(pod, node, "Failed" if process.returncode else "Succeeded", {"terminated": {"exitCode": process.returncode & 255}})

    def _start(self, pod: dict[str, Any], node: ProcessNode) -> subprocess.Popen[bytes]:
        container = pod["spec"]["containers"][0]
        values = {"status.podIP": node.address, "metadata.name": pod["metadata"]["name"]}
        environment = {
            item["name"]: item.get("value") or values.get(((item.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", ""), "")
            for item in container["env"]
        }
        options = [value for key, value in sorted(environment.items()) if key.startswith("SPARK_JAVA_OPT_")]
        home = Path(pyspark.__file__).parent
        # As the driver's: Java's archive of classes is for that class path only.
        (first,) = home.glob("jars/slf4j-api-*.jar")
        java = spark_java.environment()
        command = [f"{java['JAVA_HOME']}/bin/java", *options, f"-Xmx{environment['SPARK_EXECUTOR_MEMORY']}"]
        command += ["-cp", f"{home}/conf:{first}:{home}/jars/*"]
        command += ["org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"]
        command += ["--driver-url", environment["SPARK_DRIVER_URL"], "--executor-id", environment["SPARK_EXECUTOR_ID"]]
        command += ["--cores", environment["SPARK_EXECUTOR_CORES"], "--app-id", environment["SPARK_APPLICATION_ID"]]
        command += ["--hostname", node.address, "--resourceProfileId", environment["SPARK_RESOURCE_PROFILE_ID"]]
        command += ["--podName", environment["SPARK_EXECUTOR_POD_NAME"]]
        with (self._logs / f"{pod['metadata']['name']}.log").open("wb") as log:
            own = java | {"SPARK_LOCAL_IP": node.address, "SPARK_LOCAL_DIRS": str(self._logs)}
            return subprocess.Popen(command, env=os.environ | environment | own, stdout=log, stderr=log, start_new_session=True)

    def _report(self, pod: dict[str, Any], node: ProcessNode, phase: str, state: dict[str, Any]) -> None:
        container = pod["spec"]["containers"][0]
        status = {
            "phase": phase,
            "podIP": node.address,
            "podIPs": [{"ip": node.address}],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "restartCount": 0,
                    "ready": phase == "Running",
                    "state": state,
                }
            ],
        }
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"
        self.client.request("PATCH", path, body={"status": status}, content_type=MERGE_PATCH)


_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def _labels(node: ProcessNode) -> dict[str, str]:
    return {"kubernetes.io/hostname": node.name, **node.labels}


@contextmanager
def process_nodes(server: ApiServer, nodes: list[ProcessNode], folder: Path) -> Iterator[ProcessNodes]:
    """Add nodes, and a scheduler of the name `SCHEDULER`, to an API server for a block."""
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(server.kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": SCHEDULER}],
    }
    (folder / "scheduler.yaml").write_text(yaml.safe_dump(configuration))
    kube = gobuild.output_dir(gobuild.KUBE) / "kube"
    kubelets = ProcessNodes(server.client, nodes, folder)
    with (folder / "scheduler.log").open("wb") as log:
        command = [str(kube), "kube-scheduler", f"--config={folder / 'scheduler.yaml'}", "--secure-port=0"]
        scheduler = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually(lambda: _has_namespace(server.client), what="the namespace of node leases")
        kubelets.start()
        yield kubelets
    finally:
        kubelets.close()
        scheduler.terminate()
        scheduler.wait()


def _has_namespace(client: KubeClient) -> bool:
    try:
        return bool(client.request("GET", "/api/v1/namespaces/kube-node-lease"))
    except ApiError:
        return False
