"""The pid, mount and network namespaces that hold a whole cluster."""

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from devcluster import holding
from devcluster.embedded.layout import CONTROL_ADDRESS, INNER, NODE_PREFIX, NODES, SHARED
from devcluster.errors import DevclusterError
from devcluster.machine import search_path

_UNSHARE = (
    "unshare",
    "--mount",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--propagation",
    "private",
)
# Where programs insist on writing; what does not exist on the machine is made, and removed by `down`.
_COVERED = {"log": Path("/var/log"), "kubelet": Path("/var/lib/kubelet"), "cni": Path("/var/lib/cni")}
# The kubelet sets these for the whole machine, which would then panic on an oops.
_PRETENDED = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


class Namespace:
    """Runs commands inside.

    Parameters
    ----------
    folder : Path
        The cluster's folder on the machine.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, *, tied: bool = False) -> subprocess.Popen[bytes] | None:
        """Make the namespaces unless they exist.

        Parameters
        ----------
        tied : bool
            End them with the calling process.

        Returns
        -------
        subprocess.Popen or None
            The process to end, if it was made now.
        """
        ready = self.folder / "namespace-ready"
        if holding.holder_pid(self.folder) is not None:
            if ready.exists():
                return None
            holding.end(self.folder)  # an earlier `up` was interrupted half way through the mounts
        ready.unlink(missing_ok=True)
        process = holding.launch(self.folder, prefix=_UNSHARE, tied=tied)
        self._cover()
        done = subprocess.run(self.command(["sh", "-ec", self._script()], folder=Path("/")), check=False, capture_output=True, text=True)
        if done.returncode:
            holding.end(self.folder)
            raise DevclusterError(f"the cluster's namespaces could not be set up:\n{done.stderr.strip()}")
        ready.touch()
        return process

    def command(self, argv: Sequence[str | Path], *, folder: Path = INNER, network: bool = True) -> list[str]:
        """Return the command that runs another one inside.

        Raises
        ------
        DevclusterError
            If the cluster does not run.
        """
        pid = holding.holder_pid(self.folder)
        if pid is None:
            raise DevclusterError(f"the cluster {self.folder.name!r} does not run: python -m devcluster up --name {self.folder.name}")
        enter = ["nsenter", "--target", str(pid), "--mount", "--pid", *(["--net"] if network else [])]
        # nsenter starts in /; PATH, because the programs of a cluster are in sbin.
        return [*enter, "--", "env", "-C", str(folder), f"PATH={search_path()}", *(str(word) for word in argv)]

    def run(self, argv: Sequence[str | Path], *, text: str | None = None) -> str:
        """Run a command inside and return what it prints.

        Raises
        ------
        DevclusterError
            If it fails; the message has what it printed on stderr.
        """
        done = subprocess.run(self.command(argv), check=False, input=text, capture_output=True, text=True)
        if done.returncode:
            raise DevclusterError(f"`{shlex.join(map(str, argv))}` failed inside the cluster:\n{done.stderr.strip()}")
        return done.stdout

    def _cover(self) -> None:
        made = self.folder / "made-folders"
        names = made.read_text().split() if made.exists() else []
        for path in _COVERED.values():
            if not path.exists():
                path.mkdir(parents=True)
                names.append(str(path))
        made.write_text("\n".join(names))

    def uncover(self) -> None:
        """Remove the empty folders that were made on the machine to be covered."""
        made = self.folder / "made-folders"
        if made.exists():
            for name in made.read_text().split():
                if Path(name).is_dir() and not any(Path(name).iterdir()):
                    Path(name).rmdir()
            made.unlink()

    def _script(self) -> str:
        lines = [
            "mount --make-rshared /",
            "mount -t tmpfs -o mode=755 tmpfs /run",
            f"mkdir {INNER}",
            f"mount --bind {shlex.quote(str(self.folder))} {INNER}",
            "mount -t tmpfs -o mode=755 tmpfs /mnt",
            f"mkdir {SHARED}",
        ]
        for name, path in _COVERED.items():
            lines += [f"mkdir -p {INNER}/covered/{name}", f"mount --bind {INNER}/covered/{name} {path}"]
        lines += [
            f"mkdir -p {INNER}/shared",
            f"chmod 1777 {INNER}/shared",
            f"mount --bind {INNER}/shared {SHARED}",
        ]
        for name, value in _PRETENDED.items():
            file = f"{INNER}/sysctl/{name}"
            lines += [
                f"mkdir -p $(dirname {file})",
                f"echo {value} > {file}",
                f"[ ! -e /proc/sys/{name} ] || mount --bind {file} /proc/sys/{name}",
            ]
        # No device leads out of the namespace: the default route ends on the bridge.
        lines += ["ip link set lo up", "ip link add eth0 type bridge", "ip link set eth0 up"]
        lines += [f"ip address add {node.address}/{NODE_PREFIX} dev eth0" for node in NODES]
        lines += [
            f"ip route add default dev eth0 src {CONTROL_ADDRESS}",
            "echo 1 > /proc/sys/net/ipv4/ip_forward",
        ]
        return "\n".join(lines)
