"""The control plane alone, as plain processes on 127.0.0.1."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster import holding
from devcluster.controlplane import ControlPlane, Endpoints
from devcluster.holding import Client
from devcluster.ports import remembered_ports


def start(folder: Path, binaries: Path, context: str) -> None:
    """Start the control plane in a folder whose holder already runs.

    Parameters
    ----------
    folder : Path
        The cluster's folder.
    binaries : Path
        Folder with the program ``kube``.
    context : str
        Name of the context in ``folder/kubeconfig``.
    """
    ports = remembered_ports(folder / "ports.json", ("api", "etcd", "etcd-peer"))
    ends = Endpoints("127.0.0.1", ports["api"], ports["etcd"], ports["etcd-peer"])
    plane = ControlPlane(folder, Client(folder), binaries, ends)
    plane.issue_certificates(context)
    plane.start()


@contextmanager
def running(folder: Path, binaries: Path) -> Iterator[None]:
    """Run a control plane that ends with the block, and with the calling process even when that is killed."""
    process = holding.launch(folder, tied=True)
    try:
        start(folder, binaries, "devcluster")
        yield
    finally:
        process.kill()
        process.wait()
        if process.stdin:
            process.stdin.close()
