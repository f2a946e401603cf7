"""Which stores a drain can rely on: renames are all or nothing, or a connector for objects that is known, or tried by the owner's word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spark_drain_agent.spark_internals.filesystems import GCS, OBJECT_STORES, S3A, VIEW, Filesystem

__all__ = ["ATOMIC_CONF", "OTHERWISE", "TRIED_CONF", "no_schemes", "rename_atomically", "store_obstacle", "without_conditions"]

ATOMIC_CONF = "spark.sparkdrain.checkpoint.atomicRenames"
"""Conf of the application: further schemes, comma separated, whose renames are atomic by the owner's word."""

TRIED_CONF = "spark.sparkdrain.checkpoint.triedObjectStores"
"""Conf of the application: further schemes, comma separated, of object stores on which the owner has tried drains."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_ATOMIC = {
    "file": frozenset(
        {
            "org.apache.hadoop.fs.LocalFileSystem",
            "org.apache.hadoop.fs.RawLocalFileSystem",
            "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem",  # takes the place of the first where Hive's jars are, as in pyspark
        }
    ),
    "hdfs": frozenset({"org.apache.hadoop.hdfs.DistributedFileSystem"}),
    "viewfs": frozenset({VIEW}),  # as what it leads to
}
OTHERWISE = "move the checkpoint to HDFS or a volume, or use mode 'Stop', which leaves the checkpoint as it is"
"""What to do where a drain cannot rely on a store."""
_LACKS = {
    S3A: (
        "cannot create an object only where there is none: use hadoop-aws 3.4.2 or newer, without fs.s3a.create.conditional.enabled=false"
    ),
    GCS: "was tried only with fs.gs.client.type=HTTP_API_CLIENT: use that",
}


def rename_atomically(filesystems: Sequence[Filesystem], atomic: str) -> bool:
    """Return whether a rename is all or nothing; what is not known to do that is treated as an object store.

    Parameters
    ----------
    filesystems
        That of the checkpoint; where it is a view, also those that it leads to.
    atomic
        Value of `ATOMIC_CONF`, which does not count for an object store that is known.
    """
    return not _not_atomic(filesystems, atomic)


def store_obstacle(filesystems: Sequence[Filesystem], atomic: str, tried: str) -> str:
    """Return why a drain cannot rely on a store, and what to do about it, or "".

    Parameters
    ----------
    filesystems, atomic
        As for `rename_atomically`.
    tried
        Value of `TRIED_CONF`.
    """
    used, obstacles = filesystems[0], _not_atomic(filesystems, atomic)
    if not obstacles or used.creates_if_absent or used.scheme.lower() in _schemes(tried):
        return ""
    obstacle, word = obstacles[0], f"if you have tried drains there, set {TRIED_CONF}={used.scheme}"
    named = f"{obstacle.scheme} ({obstacle.implementation})"
    if used.implementation in OBJECT_STORES:
        return f"{named} {_LACKS[used.implementation]}, or {OTHERWISE}; {word}"
    if obstacle.implementation in OBJECT_STORES:
        return f"{named} is used by a view, through which no object is created only where there is none: use the store's own URI; {word}"
    return (
        f"{named} is no store on which drains were tried: one that is interrupted could lose state; {OTHERWISE}; {word}, or "
        f"{ATOMIC_CONF}={obstacle.scheme} where you know that renames are atomic"
    )


def without_conditions(filesystems: Sequence[Filesystem]) -> str:
    """Return how a drain does without conditional writes where the store does not honour them, as the end of a sentence, or ""."""
    if filesystems[0].implementation != S3A:
        return ""
    return (
        "; if you have tried drains there that do without If-None-Match and If-Match, set fs.s3a.create.conditional.enabled=false and "
        f"{TRIED_CONF}={filesystems[0].scheme}"
    )


def _not_atomic(filesystems: Sequence[Filesystem], atomic: str) -> list[Filesystem]:
    by_word = _schemes(atomic)
    return [
        each
        for each in filesystems
        if each.implementation in OBJECT_STORES
        or not (each.scheme.lower() in by_word or each.implementation in _ATOMIC.get(each.scheme.lower(), ()))
    ]


def no_schemes(listed: str) -> list[str]:
    """Return what of a value of `ATOMIC_CONF` or `TRIED_CONF` is no scheme of a URI."""
    return sorted(scheme for scheme in _schemes(listed) if scheme and not _SCHEME.fullmatch(scheme))


def _schemes(listed: str) -> set[str]:
    return {scheme.strip().lower() for scheme in listed.split(",")}
