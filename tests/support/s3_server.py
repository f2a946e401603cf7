"""A real S3 server with its objects as files in a folder, and what Spark needs to use it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster import gobuild
from devcluster.ports import remembered_ports
from tests.support.s3_proxy import S3Proxy, s3_proxy
from tests.support.s3_signing import ACCESS, SECRET
from tests.support.server import server_running

__all__ = ["BUCKET", "DIRECT", "IMPATIENT", "ONE_BY_ONE", "PATIENCE_SECONDS", "S3Server", "confs", "direct", "s3_running"]

BUCKET = "checkpoints"
DIRECT = "direct"
"""Bucket that the confs of `direct` lead past the proxy to, which takes longer than the server."""
ONE_BY_ONE = "one-by-one"
"""Bucket in which no request deletes more than one object."""
IMPATIENT = "impatient"
"""Bucket of which a client asks everything once, and waits `PATIENCE_SECONDS` for the answer."""
PATIENCE_SECONDS = 2.0
_SECONDS = 60.0


@dataclass(frozen=True)
class S3Server:
    """A server behind a proxy.

    Parameters
    ----------
    proxy
        What clients talk to.
    objects
        Folder with a folder for each bucket, which holds the bucket's objects, each a file.
    port
        Of the server itself.
    """

    proxy: S3Proxy
    objects: Path
    port: int

    @property
    def folder(self) -> Path:
        """The objects of `BUCKET`."""
        return self.objects / BUCKET


def confs(port: int) -> dict[str, str]:
    """Return the confs of an application whose checkpoints are in the server behind a port."""
    return {
        "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{port}",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "spark.hadoop.fs.s3a.access.key": ACCESS,
        "spark.hadoop.fs.s3a.secret.key": SECRET,
        "spark.hadoop.fs.s3a.attempts.maximum": "2",  # a store that refuses is not to be asked for minutes
        "spark.hadoop.fs.s3a.retry.limit": "2",
        f"spark.hadoop.fs.s3a.bucket.{ONE_BY_ONE}.multiobjectdelete.enable": "false",
        f"spark.hadoop.fs.s3a.bucket.{IMPATIENT}.attempts.maximum": "1",
        f"spark.hadoop.fs.s3a.bucket.{IMPATIENT}.retry.limit": "0",
        f"spark.hadoop.fs.s3a.bucket.{IMPATIENT}.connection.timeout": f"{PATIENCE_SECONDS:g}s",
    }


def direct(port: int) -> dict[str, str]:
    """Return the confs that lead to `DIRECT` in the server at a port."""
    return {f"spark.hadoop.fs.s3a.bucket.{DIRECT}.endpoint": f"http://127.0.0.1:{port}"}


@contextmanager
def s3_running(folder: Path) -> Iterator[S3Server]:
    """Run a server, and a proxy in front of it, until the end of the block."""
    (port,) = remembered_ports(folder / "ports.json", ("s3",)).values()
    objects = folder / "objects"
    for bucket in (BUCKET, DIRECT, IMPATIENT, ONE_BY_ONE):
        (objects / bucket).mkdir(parents=True)
    program = gobuild.build(gobuild.S3) / "versitygw"
    command = [str(program), "--port", f"127.0.0.1:{port}", "--access", ACCESS, "--secret", SECRET, "posix", str(objects)]
    with server_running(folder, command, lambda: _answers(port), _SECONDS), s3_proxy(port) as proxy:
        yield S3Server(proxy, objects, port)


def _answers(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
