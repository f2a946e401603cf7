"""What the machine must have, and how to get it."""

import os
import shutil
import subprocess
from pathlib import Path

from devcluster import docker
from devcluster.errors import DevclusterError, MissingPrerequisiteError
from devcluster.locks import only_one
from devcluster.paths import cache_dir

# Program (or file) that proves it, and the Debian package that brings it.
CLUSTER_PACKAGES = {
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "nft": "nftables",
    "iptables": "iptables",
    "ip": "iproute2",
    "conntrack": "conntrack",
    "openssl": "openssl",
    "nsenter": "util-linux",
    "mount": "mount",
}
IMAGE_PACKAGES = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}
JAR_PACKAGES = {"mvn": "maven"}

_SBIN = "/usr/sbin:/sbin:/usr/local/sbin"


def search_path() -> str:
    """Return PATH with the folders of system programs, which users often lack."""
    return f"{os.environ.get('PATH', os.defpath)}:{_SBIN}"


def is_there(program: str) -> bool:
    """Say whether a program is on PATH, or a file exists."""
    if program.startswith("/"):
        return Path(program).exists()
    return shutil.which(program, path=search_path()) is not None


def require_root() -> None:
    """Raise MissingPrerequisiteError unless the caller may make namespaces and cgroups."""
    if os.geteuid() != 0:
        raise MissingPrerequisiteError(
            "the embedded cluster makes namespaces, mounts and cgroups: run as root, or start a Docker engine "
            f"and use --provider kind ({docker.lacks() or 'the engine here will do'}), or set KUBECONFIG and use a cluster that you have "
            "(an API server without nodes needs no root: --control-plane-only)"
        )


def ensure(packages: dict[str, str]) -> list[str]:
    """Install the Debian packages of missing programs.

    Returns
    -------
    list of str
        The packages that were installed.

    Raises
    ------
    MissingPrerequisiteError
        If something is missing and cannot be installed from here.
    """
    missing = sorted({package for program, package in packages.items() if not is_there(program)})
    if not missing:
        return []
    command = f"apt-get install --no-install-recommends {' '.join(missing)}"
    if os.geteuid() != 0 or not is_there("apt-get"):
        programs = ", ".join(program for program, package in packages.items() if package in missing)
        raise MissingPrerequisiteError(f"missing: {programs}. On Debian, as root: {command}")
    _apt("install", "-y", "--no-install-recommends", *missing)
    return missing


def unpacked(package: str) -> Path:
    """Unpack a Debian package into the cache, without installing it.

    For programs whose package would also start a service of the system.

    Returns
    -------
    Path
        The folder that stands for ``/``.
    """
    target = cache_dir() / "debian" / package
    with only_one(target):
        if target.is_dir():
            return target
        if not is_there("apt-get"):
            raise MissingPrerequisiteError(f"apt-get was not found: it is needed to fetch the Debian package {package}")
        draft = target.with_suffix(".draft")
        shutil.rmtree(draft, ignore_errors=True)
        download = draft / "download"
        download.mkdir(parents=True)
        if os.geteuid() == 0:
            download.chmod(0o777)  # apt fetches as a user of its own
        _apt("download", package, folder=download)
        for archive in download.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(archive), str(draft)], check=True)
        shutil.rmtree(download)
        draft.rename(target)
    return target


def _apt(*arguments: str, folder: Path = Path("/")) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "PATH": search_path()}
        return subprocess.run(["apt-get", "-q", *words], check=False, cwd=folder, env=environment, capture_output=True, text=True)

    with only_one(cache_dir() / "apt-get"):  # apt waits for nobody
        done = run(*arguments)
        if done.returncode == 0:
            return
        update = run("update")  # a fresh machine has no package lists, an old one has stale ones
        done = run(*arguments)
        if done.returncode:
            output = f"{update.stderr}\n{done.stdout}\n{done.stderr}".strip().splitlines()
            raise DevclusterError(f"`apt-get {' '.join(arguments)}` failed:\n" + "\n".join(output[-12:]))
