"""What really stands behind the URI of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["GCS", "IF_ABSENT", "OBJECT_STORES", "S3A", "VIEW", "Filesystem", "filesystems_of"]

S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
GCS = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
OBJECT_STORES = frozenset({S3A, GCS})
"""Classes of filesystems that rename a folder object by object, and of which it is known how they create an object."""

IF_ABSENT = "fs.option.create.conditional.overwrite"
"""Hadoop's option, and capability, of a file that is created only where there is none."""

_CLIENT, _JSON = "fs.gs.client.type", "HTTP_API_CLIENT"
"""Google's connector has another client, for gRPC, which was not tried."""

VIEW = "org.apache.hadoop.fs.viewfs.ViewFileSystem"


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
        Whether it is an object store, known to the agent, that creates an object only where there is none.
    """

    scheme: str
    implementation: str
    creates_if_absent: bool = False


def filesystems_of(internals: SparkInternals, uri: str) -> list[Filesystem]:
    """Return the filesystem of a URI, and what it leads to where it is a view.

    What a view of Hadoop's `ViewFileSystemOverloadScheme` leads to by its own scheme cannot be found, and is left out.
    """
    path = internals.jvm.org.apache.hadoop.fs.Path(uri)
    filesystem = path.getFileSystem(internals.hadoop_conf())
    found = Filesystem(str(path.toUri().getScheme()), str(filesystem.getClass().getName()), _creates_if_absent(filesystem, path))
    if not internals.jvm.java.lang.Class.forName(VIEW).isInstance(filesystem):
        return [found]
    behind = filesystem.resolvePath(_existing(filesystem, path))
    if found.implementation != VIEW and behind.toUri().getScheme() == path.toUri().getScheme():
        return [found]
    return [found, *filesystems_of(internals, str(behind.toString()))]


def _creates_if_absent(filesystem: Any, path: Any) -> bool:
    implementation = str(filesystem.getClass().getName())
    if implementation == GCS:
        return str(filesystem.getConf().get(_CLIENT, _JSON)) == _JSON
    return implementation == S3A and bool(filesystem.hasPathCapability(path, IF_ABSENT))


def _existing(filesystem: Any, path: Any) -> Any:
    while path.getParent() is not None and not filesystem.exists(path):
        path = path.getParent()
    return path
