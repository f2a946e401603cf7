"""Clusters by name, whatever provides them."""

import json
from pathlib import Path

from devcluster import docker, fresh, gobuild, holding, kindcluster, loopback, machine
from devcluster.embedded import cluster as embedded
from devcluster.embedded.cluster import EmbeddedCluster
from devcluster.errors import DevclusterError
from devcluster.folders import ClusterFolder
from devcluster.kindcluster import KindCluster
from devcluster.paths import cluster_dir, clusters_dir
from devcluster.progress import Progress

PROVIDERS = ("kind", "embedded")
DEFAULT_NAME = "dev"


class LoopbackCluster(ClusterFolder):
    """A control plane without nodes, as plain processes.

    Parameters
    ----------
    folder : Path
        Its objects and logs.
    """

    def is_up(self) -> bool:
        """Say whether its processes are there."""
        return holding.holder_pid(self.folder) is not None

    def up(self, progress: Progress) -> None:
        """Start what does not run yet."""
        with progress.step("building Kubernetes (up to 10 minutes the first time)"):
            binaries = gobuild.build(gobuild.KUBE)
        with progress.step("starting the control plane"):
            if not self.is_up():
                fresh.seed(self.folder, binaries)
                holding.launch(self.folder)
            loopback.start(self.folder, binaries, self.name)

    def down(self, *, purge: bool = False) -> None:
        """End it."""
        holding.end(self.folder)
        if purge:
            self.forget()


AnyCluster = LoopbackCluster | EmbeddedCluster | KindCluster
_KINDS: dict[str, type[AnyCluster]] = {"control-plane": LoopbackCluster, "embedded": EmbeddedCluster, "kind": KindCluster}
_REQUIRE = {"control-plane": lambda: None, "embedded": machine.require_root, "kind": docker.require}
STEPS = {"control-plane": 2, "embedded": embedded.STEPS, "kind": kindcluster.STEPS}


def provider_of(name: str) -> str | None:
    """Return what provides a known cluster, or None."""
    file = cluster_dir(name) / "provider"
    found = file.read_text().strip() if file.exists() else ""
    return found if found in _KINDS else None  # empty where the disk was full


def known() -> list[str]:
    """Return the names of all clusters that were started and not purged."""
    if not clusters_dir().is_dir():
        return []
    return sorted(
        folder.name for folder in clusters_dir().iterdir() if (folder / "provider").exists() and provider_of(folder.name) is not None
    )


def find(name: str) -> AnyCluster:
    """Return a known cluster.

    Raises
    ------
    DevclusterError
        If there is none of that name; the message lists those that are known.
    """
    provider = provider_of(name)
    if provider is None:
        others = ", ".join(known()) or "none"
        raise DevclusterError(f"no cluster {name!r} (known: {others}): start it with `python -m devcluster up --name {name}`")
    return _KINDS[provider](cluster_dir(name))


def find_with_nodes(name: str) -> EmbeddedCluster | KindCluster:
    """Return a known cluster that can run pods.

    Raises
    ------
    DevclusterError
        If there is none of that name, or it is a control plane only.
    """
    cluster = find(name)
    if isinstance(cluster, LoopbackCluster):
        raise DevclusterError(f"cluster {name!r} is a control plane only, it has no nodes: use another --name")
    return cluster


def chosen_for(name: str, provider: str | None = None) -> str:
    """Return what provides a cluster with nodes: what is asked for, else what does already, else kind where Docker will do."""
    return provider or provider_of(name) or ("embedded" if docker.lacks() else "kind")


def create(name: str, provider: str | None, *, control_plane_only: bool) -> tuple[str, AnyCluster]:
    """Return a cluster to start, with the provider chosen for it.

    Parameters
    ----------
    name : str
        Name of a new or known cluster.
    provider : str or None
        ``kind`` or ``embedded``; by default kind where a Docker engine answers.
    control_plane_only : bool
        An API server without nodes.

    Raises
    ------
    DevclusterError
        If the name belongs to a cluster of another sort.
    MissingPrerequisiteError
        If it is to be kind and there is no Docker engine that will do, or embedded and the caller is not root.
    """
    existing = provider_of(name)
    chosen = "control-plane" if control_plane_only else chosen_for(name, provider)
    if existing is not None and (existing != chosen or (existing == "control-plane") != control_plane_only):
        raise DevclusterError(f"cluster {name!r} exists as {existing}: use another --name, or end it with `down --purge --name {name}`")
    _REQUIRE[chosen]()  # before the name is taken
    folder = cluster_dir(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "provider").write_text(chosen + "\n")
    return chosen, _KINDS[chosen](folder)


def describe(name: str) -> dict[str, str]:
    """Return what there is to say about a known cluster."""
    cluster = find(name)
    return {
        "name": name,
        "provider": provider_of(name) or "",
        "state": _state(cluster),
        "kubeconfig": str(cluster.kubeconfig),
        "folder": str(cluster.folder),
    }


def _state(cluster: AnyCluster) -> str:
    try:
        return "up" if cluster.is_up() else "down"
    except DevclusterError:
        return "unknown"  # its Docker engine does not answer


def describe_all() -> str:
    """Return all known clusters as JSON."""
    return json.dumps([describe(name) for name in known()], indent=2)


def kubeconfig(name: str) -> Path:
    """Return the kubeconfig of a known cluster.

    Raises
    ------
    DevclusterError
        If there is no such cluster, or it has not come up yet.
    """
    found = find(name).kubeconfig
    if not found.exists():
        raise DevclusterError(f"cluster {name!r} has not come up yet: `python -m devcluster up --name {name}`")
    return found
