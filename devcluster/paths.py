"""Where things are kept."""

import os
import re
from pathlib import Path

from devcluster.errors import DevclusterError

PACKAGE = Path(__file__).resolve().parent
REPOSITORY = PACKAGE.parent
GO_SOURCES = PACKAGE / "go"

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")


def cache_dir() -> Path:
    """Return the folder for everything that can be made again."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "spark-drain" / "devcluster"


def clusters_dir() -> Path:
    """Return the folder that has one folder per cluster."""
    return cache_dir() / "clusters"


def cluster_dir(name: str) -> Path:
    """Return the folder of one cluster.

    Parameters
    ----------
    name : str
        Lower case letters, digits and dashes, at most 32: it is also the name
        of cgroups and of a kubeconfig context.

    Raises
    ------
    DevclusterError
        If the name is not of that form.
    """
    if not _NAME.fullmatch(name):
        raise DevclusterError(f"--name {name!r}: use 1 to 32 lower case letters, digits and inner dashes, for example --name e2e")
    return clusters_dir() / name
