"""A real HDFS with one name node and one data node, of the Hadoop version that pyspark carries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from devcluster.ports import remembered_ports
from tests.support.java_server import java_server
from tools import jars

__all__ = ["hdfs_running"]


@contextmanager
def hdfs_running(folder: Path) -> Iterator[str]:
    """Run an HDFS with its files in a folder; yields its URI."""
    (port,) = remembered_ports(folder / "ports.json", ("hdfs",)).values()
    details = folder / "details.json"
    clients = [str(jar) for jar in sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))]
    arguments = ["-datanodes", "1", "-format", "-nnport", str(port), "-writeDetails", str(details)]
    with java_server(folder, [*jars.hdfs(), *clients], "org.apache.hadoop.test.MiniDFSClusterManager", *arguments, ready=details.exists):
        yield f"hdfs://127.0.0.1:{port}"
