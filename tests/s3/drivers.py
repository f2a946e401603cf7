"""Drivers of their own whose checkpoints are in the bucket, and what they leave there."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

from tests.ledger.harness import Spark
from tests.support.s3_server import BUCKET, S3Server, confs
from tools import jars

__all__ = ["copy_in_bucket", "in_bucket", "spark_on"]


def spark_on(s3: S3Server) -> Spark:
    """Return a Spark that reaches the server through its proxy."""
    return Spark(jars=tuple(jars.s3a()), confs=tuple(confs(s3.proxy.port).items()))


def in_bucket(s3: S3Server, base: Path) -> Path:
    """Give an application a folder of the bucket for its checkpoints, shown below its own folder, too."""
    base.mkdir()
    name = str(uuid4())
    (base / "bucket").write_text(f"s3a://{BUCKET}/{name}")
    (base / "checkpoints").symlink_to(s3.folder / name)
    return base


def copy_in_bucket(s3: S3Server, base: Path, name: str) -> Path:
    """Copy what a crash left behind, so that it can be restarted in two ways."""
    target = in_bucket(s3, base.with_name(f"{base.name}-{name}"))
    shutil.copytree(base / "checkpoints", (target / "checkpoints").resolve())  # with what the server notes of each object
    shutil.copytree(base, target, ignore=shutil.ignore_patterns("bucket", "checkpoints"), dirs_exist_ok=True)
    before, now = ((folder / "bucket").read_text() for folder in (base, target))
    for file in (target / "store").rglob("drain-v1.*"):  # what is reported names the checkpoints
        file.write_text(file.read_text().replace(before, now))
    return target
