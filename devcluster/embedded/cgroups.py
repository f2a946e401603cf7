"""A cgroup per node, in whichever hierarchies the machine has."""

import contextlib
import os
import time
from pathlib import Path

from devcluster.errors import DevclusterError

_REMOVE_SECONDS = 20.0


def hierarchies() -> list[Path]:
    """Return the mount points of all cgroup hierarchies, v1 and v2."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        if kind.split()[0] in {"cgroup", "cgroup2"}:
            found.append(Path(mount.split()[4]))
    return found


def make(cluster: str, nodes: tuple[str, ...]) -> None:
    """Make the folders that the kubelets expect to find."""
    for root in hierarchies():
        for folder in (root / cluster, *(root / cluster / node for node in nodes)):
            folder.mkdir(exist_ok=True)
            _hand_down(folder.parent, folder)
        _weigh(root / cluster, len(nodes))


def _hand_down(parent: Path, child: Path) -> None:
    for setting in ("cpuset.cpus", "cpuset.mems"):
        source = parent / setting
        # v1 refuses processes in a cpuset without processors; v2 has the file but inherits.
        if source.exists() and not (parent / "cgroup.controllers").exists():
            (child / setting).write_text(source.read_text())
    available = parent / "cgroup.controllers"
    if available.exists():
        for controller in available.read_text().split():
            with contextlib.suppress(OSError):
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")


def _weigh(folder: Path, nodes: int) -> None:
    # By default all pods together would weigh as much as one single busy process of the machine,
    # and requests to the API server time out beside a build.
    promised = nodes * (os.cpu_count() or 1)
    for setting, value in (("cpu.shares", min(1024 * promised, 262144)), ("cpu.weight", min(100 * promised, 10000))):
        if (folder / setting).exists():
            (folder / setting).write_text(str(value))


def remove(cluster: str) -> None:
    """Remove the cluster's cgroups, whose processes must have been killed.

    Raises
    ------
    DevclusterError
        If one is still in use after 20 s; the message names it.
    """
    deadline = time.monotonic() + _REMOVE_SECONDS
    while True:
        left = leftovers(cluster)
        if not left:
            return
        if time.monotonic() > deadline:
            raise DevclusterError(f"cgroups still in use: {', '.join(map(str, left))}")
        for top in left:
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):  # the kernel is still ending the last process in it
                    Path(folder).rmdir()
        time.sleep(0.05)


def leftovers(cluster: str) -> list[Path]:
    """Return the cluster's cgroups that exist."""
    return [root / cluster for root in hierarchies() if (root / cluster).exists()]
