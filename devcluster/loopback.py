"""The control plane alone, as plain processes on 127.0.0.1."""

from pathlib import Path

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
