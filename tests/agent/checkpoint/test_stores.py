"""Which stores a drain may rely on, and why not: a table."""

from __future__ import annotations

import dataclasses

import pytest
from spark_drain_agent.checkpoint.stores import ATOMIC_CONF, TRIED_CONF, rename_atomically, store_obstacle
from spark_drain_agent.spark_internals.filesystems import GCS, S3A, VIEW, Filesystem

LOCAL, RAW = Filesystem("file", "org.apache.hadoop.fs.LocalFileSystem"), Filesystem("file", "org.apache.hadoop.fs.RawLocalFileSystem")
HDFS = Filesystem("hdfs", "org.apache.hadoop.hdfs.DistributedFileSystem")
OLD_S3 = Filesystem("s3a", S3A)
S3, GS = dataclasses.replace(OLD_S3, creates_if_absent=True), Filesystem("gs", GCS, creates_if_absent=True)
VIEW_OF, OSS = Filesystem("viewfs", VIEW), Filesystem("oss", "a.b.C")


@pytest.mark.parametrize(
    ("filesystems", "atomic", "atomically"),
    [
        ([LOCAL], "", True),
        ([RAW], "", True),
        ([Filesystem("file", "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem")], "", True),
        ([HDFS], "", True),
        ([Filesystem("HDFS", HDFS.implementation)], "", True),
        ([VIEW_OF, HDFS], "", True),
        ([VIEW_OF, S3], "", False),
        ([S3], "", False),
        ([GS], "", False),
        ([S3], "s3a", False),
        ([OLD_S3], "s3a", False),
        ([GS], "gs", False),
        ([OSS], "", False),
        ([OSS], "gs,oss", True),
        ([OSS], "gs, OSS ", True),
        ([Filesystem("s3a", RAW.implementation)], "", False),
        ([Filesystem("file", S3.implementation)], "", False),
        ([Filesystem("file", HDFS.implementation)], "", False),
        ([Filesystem("hdfs", "com.example.CachingFileSystem")], "", False),
        ([Filesystem("s3", VIEW), LOCAL], "", False),
        ([Filesystem("s3", VIEW), LOCAL], "s3", True),
        ([Filesystem("s3", VIEW), OLD_S3], "s3", False),
    ],
    ids=str,
)
def test_renames(filesystems: list[Filesystem], atomic: str, atomically: bool) -> None:
    assert rename_atomically(filesystems, atomic) is atomically


UNCONDITIONAL, BY_GRPC = "use hadoop-aws 3.4.2 or newer", "was tried only with fs.gs.client.type=HTTP_API_CLIENT"
BEHIND_A_VIEW, UNTRIED = "use the store's own URI", "is no store on which drains were tried"


@pytest.mark.parametrize(
    ("filesystems", "atomic", "tried", "obstacle"),
    [
        ([HDFS], "", "", ""),
        ([S3], "", "", ""),
        ([GS], "", "", ""),
        ([OLD_S3], "", "", UNCONDITIONAL),
        ([OLD_S3], "s3a", "", UNCONDITIONAL),
        ([OLD_S3], "", "gs, S3A", ""),
        ([Filesystem("gs", GCS)], "", "", BY_GRPC),
        ([Filesystem("gs", GCS)], "", "gs", ""),
        ([VIEW_OF, S3], "", "", BEHIND_A_VIEW),
        ([VIEW_OF, GS], "", "gs", BEHIND_A_VIEW),
        ([VIEW_OF, GS], "", "viewfs", ""),
        ([VIEW_OF, OLD_S3], "", "", BEHIND_A_VIEW),
        ([OSS], "", "", UNTRIED),
        ([OSS], "", "abfs", UNTRIED),
        ([OSS], "", "oss", ""),
        ([OSS], "oss", "", ""),
        ([Filesystem("gs", "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem")], "", "", UNTRIED),
        *[
            ([Filesystem(scheme, "a.b.C")], "", "", UNTRIED)
            for scheme in ("s3", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "cosn", "swift", "obs", "dbfs", "webhdfs", "xyz")
        ],
    ],
    ids=str,
)
def test_obstacles(filesystems: list[Filesystem], atomic: str, tried: str, obstacle: str) -> None:
    found = store_obstacle(filesystems, atomic, tried)
    assert obstacle in found
    assert bool(found) is bool(obstacle)
    if found:
        assert f"{filesystems[-1].scheme} ({filesystems[-1].implementation})" in found
        assert f"{TRIED_CONF}={filesystems[0].scheme}" in found
        assert (f"{ATOMIC_CONF}={filesystems[-1].scheme}" in found) is (obstacle == UNTRIED)
