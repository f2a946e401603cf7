"""A cluster of kind for itself, made by an `up` after one that was killed. Nothing of it stays."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest

from devcluster import clusters, docker
from devcluster.paths import REPOSITORY, clusters_dir
from tests.support.waiting import eventually

NAME = "kindtest"


class Cluster:
    """The command line on one name."""

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "devcluster", *arguments, "--name", NAME]

    def run(self, *arguments: str) -> str:
        done = subprocess.run(self.command(*arguments), check=False, cwd=REPOSITORY, capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        command = [sys.executable, "-m", "devcluster", "kubectl", "--name", NAME, "--", *arguments]
        done = subprocess.run(command, check=False, cwd=REPOSITORY, input=text, capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def up(self) -> None:
        self.run("up", "--provider", "kind")

    def containers(self, *options: str) -> list[str]:
        """Return the names of its nodes in the engine."""
        names = docker.run("ps", *options, "--filter", f"label=io.x-k8s.kind.cluster={NAME}", "--format", "{{.Names}}")
        return sorted(names.split())

    def kill_up(self) -> None:
        """Start creating the nodes; kill it, and kind, when the first one is there."""
        command = self.command("up", "--provider", "kind")
        # A group of its own, for kind to be killed too.
        with subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
            try:
                eventually(partial(self._begun, process), "a node is there", 600)
            finally:
                os.killpg(process.pid, signal.SIGKILL)

    def _begun(self, process: subprocess.Popen[str]) -> bool:
        assert process.poll() is None, process.communicate()[1]
        return bool(self.containers("--all"))


@pytest.fixture(scope="session")
def kind() -> Iterator[Cluster]:
    unsuitable = docker.lacks()
    if unsuitable:
        pytest.skip(unsuitable)
    cluster = Cluster()
    cluster.run("down", "--purge")
    try:
        cluster.kill_up()
        cluster.up()
        yield cluster
    finally:
        cluster.run("down", "--purge")
    assert cluster.containers("--all") == []
    assert not (clusters_dir() / NAME).exists()


@pytest.fixture(scope="session")
def kind_alone(kind: Cluster) -> Cluster:
    """Return the cluster where no other test drains on kind."""
    if clusters.chosen_for(clusters.DEFAULT_NAME) == "kind":
        pytest.skip("tests/e2e drains on kind here")
    return kind
