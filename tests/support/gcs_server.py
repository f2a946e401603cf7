"""A server that stands in for Google Cloud Storage, with its objects in memory, and what Spark needs to use it."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import parse_qs, unquote, urlsplit

from devcluster import gobuild
from devcluster.ports import remembered_ports
from tests.support.s3_proxy import Request, S3Proxy, s3_proxy
from tests.support.server import server_running

__all__ = ["BUCKET", "confs", "gcs_running"]

BUCKET = "checkpoints"
_SECONDS = 60.0
_OBJECT = re.compile(r"/storage/v1/b/[^/]+/o/(?P<key>[^/]+)(?P<copy>/rewriteTo/b/[^/]+/o/(?P<to>[^/]+))?$")


def confs(port: int) -> dict[str, str]:
    """Return the confs of an application whose checkpoints are in the server behind a port."""
    connector = "com.google.cloud.hadoop.fs.gcs"
    return {
        "spark.hadoop.fs.gs.impl": f"{connector}.GoogleHadoopFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.gs.impl": f"{connector}.GoogleHadoopFS",
        "spark.hadoop.fs.gs.block.size": "67108864",  # Hadoop's own default has a unit, which the connector cannot read
        "spark.hadoop.fs.gs.storage.root.url": f"http://127.0.0.1:{port}",
        "spark.hadoop.fs.gs.auth.type": "UNAUTHENTICATED",
        "spark.hadoop.fs.gs.http.max.retry": "2",
    }


def kind_of(method: str, target: str, headers: Mapping[str, str]) -> Request:
    """Return what a request is for: an upload begins with POST and makes the object with PUT."""
    parts = urlsplit(target)
    query = parse_qs(parts.query)
    if parts.path.startswith("/upload/"):
        return Request(method, query.get("name", [""])[0])
    found = _OBJECT.search(parts.path)
    if found is None:
        return Request("LIST" if parts.path.endswith("/o") else method, query.get("prefix", [""])[0])
    return Request("COPY" if found["copy"] else method, unquote(found["to"] or found["key"]))


@contextmanager
def gcs_running(folder: Path) -> Iterator[S3Proxy]:
    """Run a server, and a proxy in front of it, until the end of the block."""
    (port,) = remembered_ports(folder / "ports.json", ("gcs",)).values()
    program = gobuild.build(gobuild.GCS) / "fake-gcs-server"
    where = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    with s3_proxy(port, kind_of) as proxy:
        own = f"127.0.0.1:{proxy.port}"
        command = [str(program), "-backend", "memory", *where, "-public-host", own, "-external-url", f"http://{own}"]
        with server_running(folder, command, lambda: _answers(port), _SECONDS):
            yield proxy


def _answers(port: int) -> bool:
    """Make the bucket, as soon as somebody answers."""
    url, made = f"http://127.0.0.1:{port}/storage/v1/b?project=tests", json.dumps({"name": BUCKET}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, made, {"Content-Type": "application/json"})):
            return True
    except URLError:
        return False
