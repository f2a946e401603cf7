"""Which filesystems a drain can rely on: renames are all or nothing, or an object is created only where there is none."""

from __future__ import annotations

from collections.abc import Sequence

from spark_drain_agent.spark_internals.filesystems import OBJECT_STORES, Filesystem

__all__ = ["VOUCHED_CONF", "rename_obstacle"]

VOUCHED_CONF = "spark.sparkdrain.checkpoint.atomicRenames"
"""Conf of the application: further schemes, comma separated, whose renames are atomic by the owner's word."""

_ATOMIC = {
    "file": frozenset(
        {
            "org.apache.hadoop.fs.LocalFileSystem",
            "org.apache.hadoop.fs.RawLocalFileSystem",
            "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem",  # takes the place of the first where Hive's jars are, as in pyspark
        }
    ),
    "hdfs": frozenset({"org.apache.hadoop.hdfs.DistributedFileSystem"}),
}


def rename_obstacle(filesystems: Sequence[Filesystem], vouched: str) -> str:
    """Return what neither is known to rename atomically nor is an object store that a drain knows, or "".

    Parameters
    ----------
    filesystems
        That of the checkpoint; where it is a view, those that it leads to.
    vouched
        Value of `VOUCHED_CONF`.
    """
    if all(filesystem.implementation in OBJECT_STORES and filesystem.creates_if_absent for filesystem in filesystems):
        return ""
    by_word = {scheme.strip().lower() for scheme in vouched.split(",")}
    for filesystem in filesystems:
        scheme = filesystem.scheme.lower()
        if scheme in by_word or filesystem.implementation in _ATOMIC.get(scheme, ()):
            continue
        return f"{scheme} ({filesystem.implementation})"
    return ""
