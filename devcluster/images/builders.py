"""Docker and buildah, each building the same Dockerfiles."""

import hashlib
import os
import shutil
import subprocess

from devcluster import docker, machine
from devcluster.errors import DevclusterError
from devcluster.images.names import registry_path
from devcluster.images.recipes import RECIPES, Recipe
from devcluster.locks import only_one
from devcluster.paths import cache_dir

_SUITE = "bookworm"


class Docker:
    """Builds with the Docker engine; base images come from where Docker is set up to look."""

    def build(self, recipe: Recipe) -> None:
        """Build an image and leave it in the engine."""
        docker.version()  # an engine that hangs is not waited for
        command = ["build", "--tag", recipe.name, "--file", str(recipe.dockerfile), *_options(recipe)]
        if recipe.base:
            self.build(RECIPES[recipe.base])
            command += ["--build-arg", f"BASE_IMAGE={recipe.base}"]
        if "wheelhouse" in recipe.contexts:
            command += ["--build-arg", "PIP_NO_INDEX=true"]  # else pip asks the index about each wheel that it has at hand
        settings = {
            "DOCKER_BUILDKIT": "1",
            # The engine's own builder: another one would see no image of the engine, and leave none there.
            "BUILDX_BUILDER": docker.run("context", "show").strip(),
            # The time of a build would make its image another one each time, which then had to be loaded again.
            "BUILDX_NO_DEFAULT_ATTESTATIONS": "1",
        }
        docker.run(*command, str(recipe.context), settings=settings)


class Buildah:
    """Builds as root without an engine; base images are made of Debian packages."""

    def __init__(self) -> None:
        storage = cache_dir() / "buildah"
        self._command = [
            # A mount namespace of its own: a killed build leaves no mount behind.
            *("unshare", "--mount", "--propagation", "private", "buildah"),
            *("--root", str(storage / "root"), "--runroot", str(storage / "run"), "--storage-driver", "overlay"),
        ]

    def build(self, recipe: Recipe) -> None:
        """Build an image and leave it in buildah's own storage."""
        machine.require_root()
        machine.ensure(machine.IMAGE_PACKAGES)
        if recipe.base:
            self.build(RECIPES[recipe.base])
            base = f"localhost/{recipe.base}"
        else:
            base = self._debian(recipe.debian)
        command = ["bud", "--quiet", "--layers", "--tag", f"localhost/{recipe.name}", "--file", str(recipe.dockerfile)]
        command += ["--build-arg", f"BASE_IMAGE={base}", "--build-arg", "PIP_NO_INDEX=true"]
        ignore = recipe.dockerfile.with_name(f"{recipe.dockerfile.name}.dockerignore")
        command += ["--ignorefile", str(ignore)] if ignore.exists() else []
        self._buildah([*command, *_options(recipe), str(recipe.context)])

    def push(self, name: str, registry_port: int) -> None:
        """Push a built image to the cluster's registry."""
        target = f"docker://127.0.0.1:{registry_port}/{registry_path(name)}"
        # Between two folders of one disk, and once for each node, compression only costs time.
        self._buildah(["push", "--quiet", "--disable-compression", "--tls-verify=false", f"localhost/{name}", target])

    def _debian(self, packages: tuple[str, ...]) -> str:
        digest = hashlib.sha256(f"{_SUITE} {' '.join(packages)}".encode()).hexdigest()[:12]
        name = f"localhost/devcluster-debian:{digest}"
        with only_one(cache_dir() / "buildah" / digest):
            if self._buildah(["images", "--quiet", "--filter", f"reference={name}"]).strip():
                return name
            folder = cache_dir() / "buildah" / f"debian-{digest}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            unneeded = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "locale")]
            # Java's installation fails where the folder of manual pages is missing.
            manual = '--essential-hook=mkdir -p "$1/usr/share/man/man1"'
            _run(
                [
                    "mmdebstrap",
                    "--quiet",
                    "--variant=minbase",
                    *unneeded,
                    manual,
                    f"--include={','.join(packages)}",
                    _SUITE,
                    str(folder / "root.tar"),
                ]
            )
            (folder / "Dockerfile").write_text("FROM scratch\nADD root.tar /\n")
            self._buildah(["bud", "--quiet", "--tag", name, str(folder)])
            shutil.rmtree(folder)
        return name

    def _buildah(self, arguments: list[str]) -> str:
        return _run([*self._command, *arguments], {"BUILDAH_ISOLATION": "chroot"})


def _options(recipe: Recipe) -> list[str]:
    options = ["--target", recipe.target] if recipe.target else []
    for stage, folder in recipe.contexts.items():
        options += ["--build-context", f"{stage}={folder()}"]
    return options


def _run(command: list[str], environment: dict[str, str] | None = None) -> str:
    settings = os.environ | {"PATH": machine.search_path()} | (environment or {})
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=settings)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        raise DevclusterError(f"`{' '.join(map(str, command))}` failed:\n{tail}")
    return done.stdout
