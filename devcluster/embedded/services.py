"""What the nodes share: cluster DNS, kube-proxy and the image registry."""

from pathlib import Path

import yaml

from devcluster.embedded.layout import (
    CONTROL_ADDRESS,
    DNS_DOMAIN,
    DNS_SERVICE,
    INNER,
    NODES,
    POD_RANGE,
    REGISTRY_PORT,
)
from devcluster.files import write_if_changed
from devcluster.holding import Client

_ADMIN = INNER / "pki" / "admin.kubeconfig"


def start_registry(client: Client, folder: Path, program: Path) -> None:
    """Start the registry that all nodes pull from."""
    document = {
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(INNER / "registry")}, "delete": {"enabled": True}},
        "http": {"addr": f":{REGISTRY_PORT}"},
    }
    write_if_changed(folder / "registry.yaml", yaml.safe_dump(document))
    client.start("registry", [program, "serve", INNER / "registry.yaml"])


def start_proxy(client: Client, folder: Path, kube: Path) -> None:
    """Start kube-proxy: one, for the nodes share a network namespace."""
    document = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": POD_RANGE,
        "hostnameOverride": NODES[0].name,
        "clientConnection": {"kubeconfig": str(_ADMIN)},
        # The limits belong to the whole machine: leave them alone.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }
    write_if_changed(folder / "proxy.yaml", yaml.safe_dump(document))
    client.start("kube-proxy", [kube, "kube-proxy", f"--config={INNER / 'proxy.yaml'}"])


def start_dns(client: Client, folder: Path, coredns: Path, context: str) -> None:
    """Start cluster DNS as a daemon at the first node's address."""
    write_if_changed(
        folder / "Corefile",
        f""".:53 {{
  bind {CONTROL_ADDRESS}
  errors
  cache 5
  kubernetes {DNS_DOMAIN} in-addr.arpa ip6.arpa {{
    kubeconfig {_ADMIN} {context}
    pods insecure
    ttl 5
  }}
}}
""",
    )
    client.start("coredns", [coredns, "-conf", INNER / "Corefile"])


def dns_manifest() -> str:
    """Return the Service that leads to the DNS daemon, and its endpoints."""
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {"clusterIP": DNS_SERVICE, "ports": ports},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kube-dns-devcluster",
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [CONTROL_ADDRESS]}],
        "ports": ports,
    }
    return yaml.safe_dump_all([service, endpoints])
