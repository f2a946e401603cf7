"""A cluster of kind, where a Docker engine answers."""

import os
import shutil
import subprocess
from pathlib import Path

from devcluster import gobuild
from devcluster.errors import DevclusterError
from devcluster.folders import ClusterFolder
from devcluster.paths import REPOSITORY
from devcluster.progress import Progress

CONFIG = REPOSITORY / "kind-config.yaml"
STEPS = 3
_SHARED_ON_THE_MACHINE = Path("/tmp/spark-drain-shared")


def docker_answers() -> bool:
    """Say whether there is a Docker engine that the caller may use."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    return subprocess.run([docker, "info"], check=False, capture_output=True, timeout=20).returncode == 0


class KindCluster(ClusterFolder):
    """One cluster in Docker containers.

    Parameters
    ----------
    folder : Path
        Where its kubeconfig is; the folder's name is the cluster's.
    """

    def is_up(self) -> bool:
        """Say whether kind knows the cluster."""
        return self.name in self._kind("get", "clusters").split()

    def up(self, progress: Progress) -> None:
        """Create the cluster unless it exists."""
        with progress.step("building kubectl and kind (up to 10 minutes the first time)"):
            gobuild.build(gobuild.KUBE)
            gobuild.build(gobuild.KIND)
        self.folder.mkdir(parents=True, exist_ok=True)
        _SHARED_ON_THE_MACHINE.mkdir(exist_ok=True)
        _SHARED_ON_THE_MACHINE.chmod(0o1777)
        with progress.step("creating the cluster with kind"):
            if not self.is_up():
                self._kind("create", "cluster", "--config", str(CONFIG), "--kubeconfig", str(self.kubeconfig), "--wait", "180s")
        with progress.step("writing the kubeconfig"):
            self._kind("export", "kubeconfig", "--kubeconfig", str(self.kubeconfig))

    def down(self, *, purge: bool = False) -> None:
        """Delete the cluster; kind keeps nothing of it."""
        self._kind("delete", "cluster", "--kubeconfig", str(self.kubeconfig))
        if purge:
            shutil.rmtree(self.folder, ignore_errors=True)

    def load(self, image: str) -> None:
        """Copy an image from the Docker engine to every node."""
        self._kind("load", "docker-image", image)

    def _kind(self, *arguments: str) -> str:
        command = [str(gobuild.build(gobuild.KIND) / "kind"), *arguments]
        if arguments[0] != "get":
            command += ["--name", self.name]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=os.environ | {"KIND_EXPERIMENTAL_PROVIDER": "docker"}
        )
        if done.returncode:
            raise DevclusterError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()}")
        return done.stdout
