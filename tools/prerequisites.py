"""Programs that do not come from PyPI: found, installed with apt-get where that is allowed, or asked for."""

import os
import platform
import re
import subprocess

from devcluster import docker
from devcluster.errors import DevclusterError, MissingPrerequisiteError
from devcluster.machine import CLUSTER_PACKAGES, IMAGE_PACKAGES, JAR_PACKAGES, ensure

JAVA = 17
GO = (1, 26)
# Not KUBECONFIG itself: that would let the tests loose on whatever cluster somebody happens to work with.
OTHER_CLUSTER = "SPARK_DRAIN_TEST_KUBECONFIG"
_DEBIAN_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}

__all__ = ["OTHER_CLUSTER", "DevclusterError", "MissingPrerequisiteError", "go_is_there", "java_is_there", "provide"]


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return "" if done.returncode else done.stdout + done.stderr


def java_is_there() -> bool:
    """Say whether the Java that Spark would take is new enough for Spark 4."""
    home = os.environ.get("JAVA_HOME")
    found = re.search(r'version "(\d+)', _output(f"{home}/bin/java" if home else "java", "-version"))
    return found is not None and int(found[1]) >= JAVA


def go_is_there() -> bool:
    """Say whether `go` is new enough for the modules below devcluster/go."""
    found = re.match(r"go(\d+)\.(\d+)", _output("go", "env", "GOVERSION"))
    return found is not None and (int(found[1]), int(found[2])) >= GO


def _provide_java() -> None:
    if java_is_there():
        return
    architecture = _DEBIAN_ARCHITECTURE.get(platform.machine(), platform.machine())
    ensure({f"/usr/lib/jvm/java-{JAVA}-openjdk-{architecture}/bin/java": f"openjdk-{JAVA}-jre-headless"})
    if not java_is_there():
        raise MissingPrerequisiteError(
            f"Spark needs Java {JAVA} or newer, and `java` (or JAVA_HOME, now {os.environ.get('JAVA_HOME', 'unset')!r}) is not that: "
            f"install openjdk-{JAVA}-jre-headless and set JAVA_HOME=/usr/lib/jvm/java-{JAVA}-openjdk-{architecture}"
        )


def provide(target: str) -> None:
    """Install what a make target needs, as root on a Debian-like machine; ask for it elsewhere.

    Parameters
    ----------
    target : str
        ``setup``, ``lint``, ``test`` or ``demo``.

    Raises
    ------
    MissingPrerequisiteError
        Something is missing; the message has the command that installs it.
    DevclusterError
        apt-get failed.
    """
    if target == "setup":
        return
    ensure({"git": "git", "openssl": "openssl"})
    if target == "lint":
        return
    _provide_java()
    if os.environ.get(OTHER_CLUSTER):
        return
    unsuitable = docker.lacks()
    try:
        ensure(JAR_PACKAGES | CLUSTER_PACKAGES | IMAGE_PACKAGES if unsuitable else JAR_PACKAGES)
    except MissingPrerequisiteError as error:
        beside = f". A Docker engine would take the place of all but maven, but {unsuitable}" if unsuitable else ""
        raise MissingPrerequisiteError(f"{error}{beside}") from error
