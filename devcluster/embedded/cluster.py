"""The embedded cluster from start to end."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from devcluster import gobuild, holding, machine
from devcluster.controlplane import ControlPlane, Endpoints
from devcluster.embedded import cgroups, forward, nodes, services
from devcluster.embedded.layout import (
    API_PORT,
    CONTROL_ADDRESS,
    INNER,
    NODES,
    REGISTRY_PORT,
    Node,
    cgroup_name,
)
from devcluster.embedded.namespace import Namespace
from devcluster.errors import DevclusterError
from devcluster.folders import ClusterFolder
from devcluster.holding import Client
from devcluster.ports import remembered_ports
from devcluster.progress import Progress
from devcluster.readiness import is_ready

STEPS = 9
_WAY_IN_SECONDS = 30.0
_RUNTIME_SECONDS = 90.0
_NODE_SECONDS = 180.0


class EmbeddedCluster(ClusterFolder):
    """One cluster in one folder.

    Parameters
    ----------
    folder : Path
        Everything of it that survives `down`; its name is the cluster's.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.cgroup = cgroup_name(folder.name)
        self.namespace = Namespace(folder)
        self.client = Client(folder, INNER)

    def is_up(self) -> bool:
        """Say whether the cluster's processes are there."""
        return holding.holder_pid(self.folder) is not None

    def ports(self) -> dict[str, int]:
        """Return the machine's loopback ports that lead to ``api`` and ``registry``."""
        if self._forwarder() is not None:
            ports: dict[str, int] = json.loads((self.folder / "ports.json").read_text())
            return ports
        return remembered_ports(self.folder / "ports.json", ("api", "registry"))

    def up(self, progress: Progress) -> None:
        """Start what does not run yet; can be repeated at any time.

        Raises
        ------
        MissingPrerequisiteError
            If the machine lacks something.
        DevclusterError
            If a part does not start; the message names its log.
        """
        machine.require_root()
        with progress.step("checking programs"):
            installed = machine.ensure(machine.CLUSTER_PACKAGES)
            registry = machine.unpacked("docker-registry") / "usr/bin/docker-registry"
            if installed:
                progress.say(f"installed {' '.join(installed)}")
        with progress.step("building Kubernetes (up to 10 minutes the first time)"):
            kube = gobuild.build(gobuild.KUBE)
        with progress.step("building containerd, CoreDNS and pause (up to 4 minutes the first time)"):
            containerd = gobuild.build(gobuild.CONTAINERD)
            coredns = gobuild.build(gobuild.COREDNS)
            pause = gobuild.build(gobuild.PAUSE)
        with progress.step("making namespaces and cgroups"):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.namespace.open()
            cgroups.make(self.cgroup, tuple(node.name for node in NODES))
        with progress.step("opening the way in from 127.0.0.1"):
            ends = self._open_way_in()
        plane = ControlPlane(self.folder, self.client, kube, ends, nodes=True)
        authority = plane.issue_certificates(self.name)
        nodes.sandbox_archive(pause / "pause", self.folder / "pause.tar")
        for node in NODES:
            nodes.configure(self.folder, node, authority, ends, self.cgroup)
            nodes.start_runtime(self.client, node, containerd)
        services.start_registry(self.client, self.folder, registry)
        with progress.step("starting the control plane"):
            plane.start()
        with progress.step("starting DNS and the service proxy"):
            self.kubectl(kube, "apply", "-f", "-", text=services.dns_manifest())
            services.start_proxy(self.client, self.folder, kube / "kube")
            services.start_dns(self.client, self.folder, coredns / "coredns", self.name)
        since = datetime.now(UTC).replace(microsecond=0)
        if f"kubelet-{NODES[0].name}" in self.client.running():
            since = datetime.min.replace(tzinfo=UTC)
        with progress.step("starting the nodes"):
            for node in NODES:
                self._import_sandbox(containerd / "ctr", node)
                nodes.start_kubelet(self.client, node, kube / "kube")
        with progress.step("waiting for the nodes"):
            self._await_nodes(plane, since)
        progress.say(f"{len(NODES)} nodes are Ready")

    def down(self, *, purge: bool = False) -> None:
        """End everything, whatever of it is still alive.

        Parameters
        ----------
        purge : bool
            Forget objects and images too.

        Raises
        ------
        DevclusterError
            If something cannot be removed; the message names it.
        """
        holding.end(self.folder)
        cgroups.remove(self.cgroup)
        self.namespace.uncover()
        mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {self.folder}/" in line]
        if mounts:
            raise DevclusterError("mounts are left behind:\n" + "\n".join(mounts))
        if purge:
            self.forget()

    def kubectl(self, kube: Path, *arguments: str, text: str | None = None) -> str:
        """Run kubectl as the administrator and return what it prints.

        Raises
        ------
        DevclusterError
            If it fails.
        """
        command = [str(kube / "kubectl"), "--kubeconfig", str(self.kubeconfig), *arguments]
        done = subprocess.run(command, check=False, input=text, capture_output=True, text=True)
        if done.returncode:
            raise DevclusterError(f"`kubectl {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout

    def _forwarder(self) -> int | None:
        return holding.lock_owner(self.folder / "forward.lock")

    def _open_way_in(self) -> Endpoints:
        ports = self.ports()
        if self._forwarder() is None:
            ways = [f"{ports['api']}={CONTROL_ADDRESS}:{API_PORT}", f"{ports['registry']}=127.0.0.1:{REGISTRY_PORT}"]
            script = [sys.executable, "-I", forward.__file__, str(INNER / "forward.lock"), *ways]
            with (self.folder / "log" / "forward.log").open("wb") as log:
                process = subprocess.Popen(
                    self.namespace.command(script, network=False),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            holding.let_outlive(process)
            deadline = time.monotonic() + _WAY_IN_SECONDS
            while self._forwarder() is None:
                if time.monotonic() > deadline:
                    raise DevclusterError(f"no way in from 127.0.0.1: see {self.folder}/log/forward.log")
                time.sleep(0.02)
        return Endpoints(CONTROL_ADDRESS, API_PORT, 2379, 2380, f"https://127.0.0.1:{ports['api']}")

    def _import_sandbox(self, ctr: Path, node: Node) -> None:
        deadline = time.monotonic() + _RUNTIME_SECONDS
        command: list[str | Path] = [ctr, "--address", node.socket, "--namespace", "k8s.io", "images", "import", INNER / "pause.tar"]
        while True:
            try:
                self.namespace.run(command)
                return
            except DevclusterError:
                self.client.check(f"containerd-{node.name}")
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _await_nodes(self, plane: ControlPlane, since: datetime) -> None:
        deadline = time.monotonic() + _NODE_SECONDS
        while True:
            items = json.loads(plane.get("/api/v1/nodes"))["items"]
            ready = [item["metadata"]["name"] for item in items if is_ready(item, since)]
            if len(ready) >= len(NODES):
                return
            self.client.check(*(f"kubelet-{node.name}" for node in NODES), "coredns", "kube-proxy", "registry")
            if time.monotonic() > deadline:
                raise DevclusterError(f"only {ready or 'no node'} Ready after {_NODE_SECONDS:.0f} s: see {self.folder}/log")
            time.sleep(0.1)
