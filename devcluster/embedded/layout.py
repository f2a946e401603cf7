"""Names, addresses and paths inside the cluster's namespaces."""

from dataclasses import dataclass
from pathlib import Path

# The cluster's folder is bound here: short, because paths of sockets end at 107 bytes.
INNER = Path("/run/devcluster")
SHARED = Path("/mnt/shared")
POD_RANGE = "10.244.0.0/16"
CONTROL_ADDRESS = "10.99.0.1"
NODE_PREFIX = 24
DNS_SERVICE = "10.96.0.10"
DNS_DOMAIN = "cluster.local"
API_PORT = 6443
REGISTRY_PORT = 5000
SANDBOX_IMAGE = "localhost/devcluster-pause:1"


@dataclass(frozen=True)
class Node:
    """One node; the first shares its address with the control plane.

    Parameters
    ----------
    number : int
        Counted from 1.
    """

    number: int

    @property
    def name(self) -> str:
        """Name in Kubernetes."""
        return f"node{self.number}"

    @property
    def address(self) -> str:
        """Address of the kubelet."""
        return f"10.99.0.{self.number}"

    @property
    def pods(self) -> str:
        """Range of the node's pod addresses."""
        return f"10.244.{self.number - 1}.0/24"

    @property
    def folder(self) -> Path:
        """What survives a restart, as the daemons see it."""
        return INNER / self.name

    @property
    def volatile(self) -> Path:
        """What a power cut would lose: sockets and the state of running containers."""
        return Path("/run") / self.name

    @property
    def socket(self) -> Path:
        """Where containerd listens."""
        return self.volatile / "containerd.sock"


NODES = (Node(1), Node(2))


def cgroup_name(cluster: str) -> str:
    """Return the name of the cluster's folder in each cgroup hierarchy."""
    return f"devcluster-{cluster}"
