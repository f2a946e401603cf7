"""A cluster of kind, where a Docker engine answers."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import yaml

from devcluster import docker, gobuild
from devcluster.errors import DevclusterError, MissingPrerequisiteError
from devcluster.folders import ClusterFolder
from devcluster.images.names import full_name
from devcluster.paths import REPOSITORY
from devcluster.progress import Progress
from devcluster.readiness import is_outdated, is_ready

CONFIG = REPOSITORY / "kind-config.yaml"
# A node image instead of the one in kind-config.yaml, for example from a mirror.
NODE_IMAGE = "SPARK_DRAIN_KIND_IMAGE"
STEPS = 3
_NODE_SECONDS = 180.0
_ATTEMPTS = 4
_CTR = ("ctr", "--namespace", "k8s.io", "images")
# On an image of a node: which of the engine's images it is a copy of.
_COPY_OF = "spark-drain.devcluster/copy-of"


@dataclass(frozen=True)
class _Node:
    name: str
    role: str
    runs: bool
    image: str
    mounts: tuple[str, ...]


def _wanted() -> int:
    return len(yaml.safe_load(CONFIG.read_text())["nodes"])


class KindCluster(ClusterFolder):
    """One cluster in Docker containers.

    Parameters
    ----------
    folder : Path
        Where its kubeconfig is; the folder's name is the cluster's.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._creation = folder / "creation"
        self._shared = folder / "shared"

    def is_up(self) -> bool:
        """Say whether all of its nodes run; DevclusterError if the Docker engine does not answer."""
        if not self._is_made():
            return False
        docker.version()  # an engine that hangs is not waited for
        nodes = self._nodes()
        return len(nodes) == _wanted() and self._is_ours(nodes) and all(node.runs for node in nodes)

    def up(self, progress: Progress) -> None:
        """Create the cluster unless it exists, or start what of it is stopped.

        Raises
        ------
        MissingPrerequisiteError
            If there is no Docker engine that will do.
        DevclusterError
            If the nodes cannot be made, are another cluster's, or do not become Ready.
        """
        docker.require()
        with progress.step("building kubectl and kind (up to 10 minutes the first time)"):
            gobuild.build(gobuild.KUBE)
            gobuild.build(gobuild.KIND)
        with progress.step("creating the nodes, or starting those that are stopped"):
            for attempt in range(1, _ATTEMPTS + 1):
                self._run_nodes()
                try:
                    self._export_kubeconfig()
                    break
                except DevclusterError:
                    # The engine may still have been carrying out an earlier `down`.
                    if attempt == _ATTEMPTS or all(node.runs for node in self._nodes()):
                        raise
        with progress.step("waiting for the nodes"):
            self._await_nodes()

    def down(self, *, purge: bool = False) -> None:
        """Stop the nodes, which keep objects and images.

        Parameters
        ----------
        purge : bool
            Delete them instead, or forget them where no engine answers.

        Raises
        ------
        MissingPrerequisiteError
            If no engine answers that could stop them.
        """
        if self._shared.exists():
            try:
                docker.version()
                if not self._is_ours(self._nodes()):
                    print(f"the nodes of the name {self.name!r} are not devcluster's: left alone", file=sys.stderr)
                elif purge:
                    self._delete()
                else:
                    self._stop()
            except MissingPrerequisiteError as error:
                if not purge:
                    raise
                print(f"cluster {self.name!r} is forgotten; its nodes, if there are any, stay: {error}", file=sys.stderr)
        if purge:
            self.forget()

    def load(self, image: str) -> None:
        """Copy an image from the Docker engine to every worker that lacks it: the control plane's taint keeps pods away."""
        if not self._is_made():
            raise DevclusterError(f"cluster {self.name!r} has not come up yet: `python -m devcluster up --name {self.name}`")
        docker.version()  # as in `is_up`
        wanted = docker.image_id(image)
        # Not left to kind: where engine and node count an image's id in different ways, it would copy each time.
        late = [node.name for node in self._nodes() if node.role == "worker" and not self._has_copy(node.name, image, wanted)]
        if not late:
            return
        self._kind("load", "docker-image", image, "--nodes", ",".join(late))
        for node in late:
            docker.run("exec", node, *_CTR, "label", full_name(image), f"{_COPY_OF}={wanted}")

    def _has_copy(self, node: str, image: str, wanted: str) -> bool:
        query = f'name=="{full_name(image)}",labels."{_COPY_OF}"=="{wanted}"'
        return bool(docker.run("exec", node, *_CTR, "ls", "--quiet", query).strip())

    def _is_made(self) -> bool:
        return self._creation.exists() and self._creation.read_text().startswith("done\n")

    def _is_ours(self, nodes: list[_Node]) -> bool:
        """Whether nodes of this name are not those of a cluster that was made by hand: ours have our shared folder."""
        shared = {str(self._shared), str(self._shared.resolve())}
        return not nodes or any(not shared.isdisjoint(node.mounts) for node in nodes)

    def _run_nodes(self) -> None:
        nodes = self._nodes()
        if not self._is_ours(nodes):
            raise DevclusterError(
                f"kind has a cluster {self.name!r} that is not devcluster's: use another --name, "
                f"or delete it with `kind delete cluster --name {self.name}`"
            )
        stopped = [node.name for node in nodes if not node.runs]
        if not nodes or not self._is_made():
            self._create()
        elif len(nodes) < _wanted():
            left = ", ".join(node.name for node in nodes)
            raise DevclusterError(f"of {_wanted()} nodes there are only {left}: begin anew after `down --purge --name {self.name}`")
        elif stopped:
            docker.run("start", *stopped)

    def _export_kubeconfig(self) -> None:
        """Write it again: each start gives the API server another port on the machine."""
        self._kind("export", "kubeconfig", "--kubeconfig", str(self.kubeconfig))

    def _started(self) -> dict[str, datetime]:
        """Return since when each node runs, which may have been started by the engine."""
        names = [node.name for node in self._nodes()]
        moments = docker.run("inspect", "--format", "{{.State.StartedAt}}", *names).split()
        return {name: datetime.fromisoformat(f"{moment[:19]}+00:00") for name, moment in zip(names, moments, strict=True)}

    def _create(self) -> None:
        self._shared.mkdir(parents=True, exist_ok=True)
        self._shared.chmod(0o1777)
        self._creation.unlink(missing_ok=True)
        if self._nodes():  # of an `up` that was interrupted
            self._kind("delete", "cluster", "--kubeconfig", str(self.kubeconfig))
        image = os.environ.get(NODE_IMAGE)
        chosen = ["--image", image] if image else []
        try:
            self._kind("create", "cluster", "--config", str(CONFIG), "--kubeconfig", str(self.kubeconfig), *chosen)
        except DevclusterError as error:
            if "failed to pull image" not in str(error):
                raise
            raise DevclusterError(f"{error}\nAnother node image, for example from a mirror, can be named in {NODE_IMAGE}") from error
        self._creation.write_text("done\n")

    def _delete(self) -> None:
        nodes = self._nodes()
        self._kind("delete", "cluster", "--kubeconfig", str(self.kubeconfig))
        if nodes and self._shared.is_dir() and any(self._shared.iterdir()):
            # Pods wrote there as users whose files the caller may not be able to delete.
            box = ("run", "--rm", "--network", "none", "--volume", f"{self._shared}:/shared", "--entrypoint", "find", nodes[0].image)
            docker.run(*box, "/shared", "-mindepth", "1", "-delete")

    def _stop(self) -> None:
        running = [node.name for node in self._nodes() if node.runs]
        if running:
            docker.run("stop", *running)

    def _nodes(self) -> list[_Node]:
        form = '{{.Names}}\t{{.Label "io.x-k8s.kind.role"}}\t{{.State}}\t{{.Image}}\t{{.Mounts}}'
        # Not truncated: an image that was named with its digest is not known without it.
        found = docker.run("ps", "--all", "--no-trunc", "--filter", f"label=io.x-k8s.kind.cluster={self.name}", "--format", form)
        lines = [line.split("\t") for line in found.splitlines()]
        return [_Node(name, role, state == "running", image, tuple(mounts.split(","))) for name, role, state, image, mounts in lines]

    def _await_nodes(self) -> None:
        deadline = time.monotonic() + _NODE_SECONDS
        since = self._started()
        kubectl = str(gobuild.build(gobuild.KUBE) / "kubectl")
        command = [kubectl, "--kubeconfig", str(self.kubeconfig), "get", "nodes,pods", "--all-namespaces", "-o", "json"]
        while True:
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            items = [] if done.returncode else json.loads(done.stdout)["items"]
            named = {item["metadata"]["name"]: item for item in items if item["kind"] == "Node"}
            late = {name for name, moment in since.items() if name not in named or not is_ready(named[name], moment)}
            pods = [(item, since.get(item["spec"].get("nodeName", ""))) for item in items if item["kind"] == "Pod"]
            late |= {f"pod {pod['metadata']['name']}" for pod, moment in pods if moment is not None and is_outdated(pod, moment)}
            if not late:
                return
            stopped = [node.name for node in self._nodes() if not node.runs]
            if stopped:  # by an engine that had not carried out an earlier `down` yet
                docker.run("start", *stopped)
                since = self._started()
                self._export_kubeconfig()
            if time.monotonic() > deadline:
                raise DevclusterError(
                    f"not Ready after {_NODE_SECONDS:.0f} s: {', '.join(sorted(late))}. See `docker logs` of the nodes, "
                    f"or begin anew after `down --purge --name {self.name}`. {done.stderr.strip()}".strip()
                )
            time.sleep(0.5)

    def _kind(self, *arguments: str) -> str:
        command = [str(gobuild.build(gobuild.KIND) / "kind"), *arguments, "--name", self.name]
        settings = os.environ | {"KIND_EXPERIMENTAL_PROVIDER": "docker"}
        done = subprocess.run(command, check=False, cwd=self.folder, capture_output=True, text=True, env=settings)
        if done.returncode:
            raise DevclusterError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()}")
        return done.stdout
