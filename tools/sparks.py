"""The Spark releases that the agent is tested with besides the locked one: each in a folder of the cache, once per machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from devcluster.errors import DevclusterError
from devcluster.locks import only_one

__all__ = ["RELEASES", "install", "is_installed"]

_OF_OLD_PYTHON = ("3.5.9",) if sys.version_info < (3, 12) else ()  # Spark 3.5 knows Python up to 3.11
RELEASES = (*_OF_OLD_PYTHON, "4.0.5", "4.1.4", "4.3.0")


def _folder(release: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "spark-drain" / "sparks" / release


def is_installed(release: str) -> bool:
    """Say whether `install` would have nothing to do."""
    return _folder(release).is_dir()


def install(release: str) -> Path:
    """Install one release of pyspark unless it is cached, and return the folder for PYTHONPATH.

    Raises
    ------
    DevclusterError
        If the package cannot be installed; the message ends with the installer's last lines.
    """
    target = _folder(release)
    with only_one(target):
        if not target.is_dir():
            scratch = target.with_name(f".{release}.part")
            shutil.rmtree(scratch, ignore_errors=True)
            uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--compile-bytecode", "--python"]
            command = [*uv, sys.executable, "--target", str(scratch), f"pyspark=={release}"]
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise DevclusterError(f"pyspark {release} could not be installed: {done.stderr.strip()[-2000:]}")
            scratch.rename(target)
    return target
