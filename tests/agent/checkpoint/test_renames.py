"""Which filesystems a drain may rely on: a table."""

from __future__ import annotations

import dataclasses

import pytest
from spark_drain_agent.checkpoint.renames import rename_obstacle
from spark_drain_agent.spark_internals.filesystems import Filesystem

LOCAL, RAW = Filesystem("file", "org.apache.hadoop.fs.LocalFileSystem"), Filesystem("file", "org.apache.hadoop.fs.RawLocalFileSystem")
HDFS = Filesystem("hdfs", "org.apache.hadoop.hdfs.DistributedFileSystem")
S3 = Filesystem("s3a", "org.apache.hadoop.fs.s3a.S3AFileSystem")


@pytest.mark.parametrize(
    ("filesystems", "vouched", "obstacle"),
    [
        ([LOCAL], "", ""),
        ([RAW], "", ""),
        ([Filesystem("file", "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem")], "", ""),
        ([HDFS], "", ""),
        ([HDFS, LOCAL], "", ""),
        ([Filesystem("HDFS", HDFS.implementation)], "", ""),
        ([S3], "", "s3a (org.apache.hadoop.fs.s3a.S3AFileSystem)"),
        ([HDFS, S3], "", "s3a (org.apache.hadoop.fs.s3a.S3AFileSystem)"),
        ([dataclasses.replace(S3, creates_if_absent=True)], "", ""),
        ([dataclasses.replace(S3, creates_if_absent=True), LOCAL], "", "s3a (org.apache.hadoop.fs.s3a.S3AFileSystem)"),
        ([Filesystem("abfss", "a.b.C", creates_if_absent=True)], "", "abfss (a.b.C)"),
        ([S3], "gs,abfss", "s3a (org.apache.hadoop.fs.s3a.S3AFileSystem)"),
        ([S3], "gs, S3A", ""),
        ([Filesystem("s3a", RAW.implementation)], "", f"s3a ({RAW.implementation})"),
        ([Filesystem("file", S3.implementation)], "", f"file ({S3.implementation})"),
        ([Filesystem("file", HDFS.implementation)], "", f"file ({HDFS.implementation})"),
        ([Filesystem("hdfs", "com.example.CachingFileSystem")], "", "hdfs (com.example.CachingFileSystem)"),
        *[
            ([Filesystem(scheme, "a.b.C")], "", f"{scheme} (a.b.C)")
            for scheme in ("s3", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cosn", "swift", "obs", "dbfs", "webhdfs", "xyz")
        ],
    ],
    ids=str,
)
def test_filesystems(filesystems: list[Filesystem], vouched: str, obstacle: str) -> None:
    assert rename_obstacle(filesystems, vouched) == obstacle
