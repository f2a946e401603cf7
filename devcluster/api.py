"""Clusters for tests: ended when the block, or the process, ends."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster import fresh, gobuild, loopback


@dataclass(frozen=True)
class RunningControlPlane:
    """An API server without nodes.

    Parameters
    ----------
    kubeconfig : Path
        The administrator's.
    kubectl : Path
        The program, of the same version as the server.
    state_dir : Path
        Logs are in ``log/`` below it.
    """

    kubeconfig: Path
    kubectl: Path
    state_dir: Path

    def environment(self) -> dict[str, str]:
        """Return the environment for a process that talks to this cluster."""
        path = f"{self.kubectl.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return os.environ | {"KUBECONFIG": str(self.kubeconfig), "PATH": path}


@contextmanager
def control_plane(state_dir: Path | None = None) -> Iterator[RunningControlPlane]:
    """Run etcd, kube-apiserver and kube-controller-manager on free loopback ports.

    Needs neither root nor a container engine. All of it ends with the block,
    and with the calling process even when that is killed.

    Parameters
    ----------
    state_dir : Path or None
        Where to keep the objects over several runs; by default each run starts
        without any, in a temporary folder.
    """
    binaries = gobuild.build(gobuild.KUBE)
    with ExitStack() as stack:
        if state_dir is None:
            state_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="devcluster-", ignore_cleanup_errors=True)))
        folder = state_dir.resolve()
        fresh.seed(folder, binaries)
        stack.enter_context(loopback.running(folder, binaries))
        yield RunningControlPlane(folder / "kubeconfig", binaries / "kubectl", folder)
