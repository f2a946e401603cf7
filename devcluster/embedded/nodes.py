"""containerd and kubelet of a node."""

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

import yaml

from devcluster.certificates import Authority
from devcluster.controlplane import Endpoints
from devcluster.embedded.layout import (
    DNS_DOMAIN,
    DNS_SERVICE,
    INNER,
    REGISTRY_PORT,
    SANDBOX_IMAGE,
    Node,
)
from devcluster.files import write_if_changed
from devcluster.holding import Client
from devcluster.machine import search_path

_KUBELET_HEALTH_PORT = 20248
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def configure(folder: Path, node: Node, authority: Authority, endpoints: Endpoints, cgroup: str) -> None:
    """Write all files of a node.

    Parameters
    ----------
    folder : Path
        The cluster's folder on the machine.
    node : Node
        The node.
    authority : Authority
        Issues the kubelet's certificate.
    endpoints : Endpoints
        Where the API server is.
    cgroup : str
        Name of the cluster's cgroup.
    """
    home = folder / node.name
    for name in ("cni", "logs", "plugins", "kubelet"):
        (home / name).mkdir(parents=True, exist_ok=True)
    authority.issue(node.name, f"/O=system:nodes/CN=system:node:{node.name}", (f"IP:{node.address}", f"DNS:{node.name}"))
    authority.kubeconfig(node.name, endpoints.url, authority.folder / f"{node.name}.kubeconfig", node.name)
    write_if_changed(home / "cni" / "10-bridge.conflist", json.dumps(_network(node), indent=1))
    write_if_changed(home / "containerd.toml", _containerd(node))
    write_if_changed(home / "kubelet.yaml", yaml.safe_dump(_kubelet(node, cgroup)))
    # Every image name, whatever its registry, is asked for at the cluster's own one: nothing else can be reached.
    hosts = folder / "certs.d" / "_default" / "hosts.toml"
    hosts.parent.mkdir(parents=True, exist_ok=True)
    write_if_changed(hosts, f'[host."http://127.0.0.1:{REGISTRY_PORT}"]\n  capabilities = ["pull", "resolve"]\n')
    # The machine's resolvers cannot be reached from here; a pod with dnsPolicy Default gets this.
    write_if_changed(folder / "resolv.conf", "nameserver 127.0.0.1\n")


def start_runtime(client: Client, node: Node, binaries: Path) -> None:
    """Start a node's containerd."""
    environment = {"PATH": f"{binaries}:{search_path()}"}  # it looks for its shim there
    client.start(f"containerd-{node.name}", [binaries / "containerd", "--config", node.folder / "containerd.toml"], environment)


def start_kubelet(client: Client, node: Node, kube: Path) -> None:
    """Start a node's kubelet, whose containerd must run."""
    flags = {
        "config": node.folder / "kubelet.yaml",
        "kubeconfig": INNER / "pki" / f"{node.name}.kubeconfig",
        "hostname-override": node.name,
        "node-ip": node.address,
        "root-dir": node.folder / "kubelet",
        "cert-dir": node.folder / "kubelet-pki",
    }
    words = [f"--{name}={value}" for name, value in flags.items()]
    client.start(f"kubelet-{node.name}", [kube, "kubelet", *words], {"PATH": search_path()})


def sandbox_archive(pause: Path, target: Path) -> None:
    """Write the image of the container that holds a pod's namespaces, from one static program."""
    layer = _tar({"pause": pause.read_bytes()})
    config = {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_sha256(layer)}"]},
    }
    packed = json.dumps(config).encode()
    name = f"{_sha256(packed)}.json"
    manifest = [{"Config": name, "RepoTags": [SANDBOX_IMAGE], "Layers": ["layer.tar"]}]
    target.write_bytes(_tar({"layer.tar": layer, name: packed, "manifest.json": json.dumps(manifest).encode()}))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _network(node: Node) -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": f"cni{node.number}",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,  # a pod may reach itself through its Service
        "ipam": {
            "type": "host-local",
            "dataDir": str(node.volatile / "addresses"),
            "ranges": [[{"subnet": node.pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": f"devcluster-{node.name}", "plugins": [bridge, ports]}


def _containerd(node: Node) -> str:
    # NRI is off: both nodes would listen at /var/run/nri/nri.sock, and the one that comes second fails when both start at once.
    return f"""version = 3
root = "{node.folder}/containerd"
state = "{node.volatile}/containerd"

[grpc]
  address = "{node.socket}"

[plugins.'io.containerd.nri.v1.nri']
  disable = true

[plugins.'io.containerd.internal.v1.opt']
  path = "{node.folder}/opt"

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{SANDBOX_IMAGE}"

[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "{INNER}/certs.d"

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "{node.folder}/cni"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  Root = "{node.volatile}/runc"
"""


def _kubelet(node: Node, cgroup: str) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "healthzPort": _KUBELET_HEALTH_PORT + node.number,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(INNER / "pki" / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}/{node.name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{node.socket}",
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": DNS_DOMAIN,
        "resolvConf": str(INNER / "resolv.conf"),
        # A developer's disk is often fuller than a server's: never throw images or pods away for it.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi"},
        # Two kubelets with one folder delete each other's logs, once a minute.
        "podLogsDir": str(node.folder / "logs"),
        "volumePluginDir": str(node.folder / "plugins"),
        "nodeStatusUpdateFrequency": "4s",
        "maxPods": 60,
    }
