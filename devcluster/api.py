"""Clusters for tests: ended when the block, or the process, ends."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster import gobuild, holding, loopback
from devcluster.locks import only_one
from devcluster.paths import cache_dir

_FRESH_VERSION = 1  # increase when the certificates or flags of a new control plane change


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
    if state_dir is not None:
        with _running(state_dir.resolve(), binaries) as plane:
            yield plane
        return
    with tempfile.TemporaryDirectory(prefix="devcluster-", ignore_cleanup_errors=True) as name:
        # The first start of an empty API server takes four times as long as any later one.
        folder = Path(name, "state")
        shutil.copytree(_fresh(binaries), folder)
        with _running(folder, binaries) as plane:
            yield plane


@contextmanager
def _running(folder: Path, binaries: Path) -> Iterator[RunningControlPlane]:
    process = holding.launch(folder, tied=True)
    try:
        loopback.start(folder, binaries, "devcluster")
        yield RunningControlPlane(folder / "kubeconfig", binaries / "kubectl", folder)
    finally:
        process.kill()
        process.wait()
        if process.stdin:
            process.stdin.close()


def _fresh(binaries: Path) -> Path:
    """Return the folder of a control plane that was started once and never used."""
    template = cache_dir() / "fresh" / f"{binaries.name}-{_FRESH_VERSION}"
    with only_one(template):
        if not template.is_dir():
            draft = template.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            with _running(draft, binaries):
                pass
            for leftover in ("holder.sock", "holder.lock", "ports.json", "log"):
                path = draft / leftover
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            draft.rename(template)
    return template
