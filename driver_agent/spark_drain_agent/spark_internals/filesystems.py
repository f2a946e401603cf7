"""What really stands behind the URI of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["IF_ABSENT", "OBJECT_STORES", "Filesystem", "filesystems_of"]

OBJECT_STORES = frozenset({"org.apache.hadoop.fs.s3a.S3AFileSystem"})
"""Classes of filesystems that rename a folder object by object, and create an object by one request."""

IF_ABSENT = "fs.option.create.conditional.overwrite"
"""Hadoop's option, and capability, of a file that is created only where there is none."""

_VIEW = "org.apache.hadoop.fs.viewfs.ViewFileSystem"


@dataclass(frozen=True)
class Filesystem:
    """A Hadoop filesystem.

    Parameters
    ----------
    scheme
        Of the URI by which it is used.
    implementation
        Its class.
    creates_if_absent
        Whether it creates a file, by one request, only where there is none (S3: ``If-None-Match``).
    """

    scheme: str
    implementation: str
    creates_if_absent: bool = False


def filesystems_of(internals: SparkInternals, uri: str) -> list[Filesystem]:
    """Return the filesystem of a URI, and what a view leads to in its place."""
    path, conf = internals.jvm.org.apache.hadoop.fs.Path(uri), internals.hadoop_conf()
    scheme, filesystem = str(path.toUri().getScheme()), path.getFileSystem(conf)
    found = Filesystem(scheme, str(filesystem.getClass().getName()), bool(filesystem.hasPathCapability(path, IF_ABSENT)))
    if not internals.jvm.java.lang.Class.forName(_VIEW).isInstance(filesystem):
        return [found]
    behind = filesystem.resolvePath(_existing(filesystem, path))
    beneath = filesystems_of(internals, str(behind.toString()))
    return beneath if scheme == "viewfs" else [found, *beneath]


def _existing(filesystem: Any, path: Any) -> Any:
    while path.getParent() is not None and not filesystem.exists(path):
        path = path.getParent()
    return path
