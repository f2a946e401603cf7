"""`recover` and `resume` on a checkpoint in S3."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from spark_drain_store.cli import main as drain_command

from tests.ledger.harness import EXACT, Crash, Ledger, Restarter, write_events
from tests.s3.drivers import copy_in_bucket, in_bucket, spark_on
from tests.support.s3_server import BUCKET, S3Server, confs
from tools import jars

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.soak
def test_a_pending_flush_is_given_up_and_the_archive_is_put_back(s3: S3Server, restarter: Restarter, tmp_path: Path) -> None:
    source = tmp_path / "input"
    write_events(source)
    base = in_bucket(s3, tmp_path / "killed")
    Crash("WorkCopy", "before-sink-write", spark=spark_on(s3)).happen(source, base)
    drain_command(["--metadata-store", f"file:{base}/store", "drain", "cleanup", "--all"])
    before = Ledger(base).seen

    recovered = restarter.command("recover", f"{_bucket(base)}/ledger", "--discard-pending")
    assert recovered["outcome"] == "0", recovered["detail"]
    damaged = copy_in_bucket(s3, base, "damaged")

    restored = restarter.command("resume", f"{_bucket(base)}/ledger", "--from", "archive", "--accept-batch-id-reuse")
    assert restored["outcome"] == "0", restored["detail"]
    went_on = restarter.run("agent", "v1", source, base, "consume")
    assert went_on["outcome"] == "ran", went_on["detail"]
    assert Ledger(base).verdict() == EXACT
    assert Ledger(base).seen != before

    lost = next((damaged / "checkpoints/ledger/_drain").glob("*/state/0/*/*.delta"))
    lost.unlink()
    objects = _objects(damaged)
    refused = restarter.command("resume", f"{_bucket(damaged)}/ledger", "--from", "archive", "--accept-batch-id-reuse")
    assert (refused["outcome"], "1 of its files are missing" in refused["detail"]) == ("1", True), refused["detail"]
    assert _objects(damaged) == objects


def test_a_process_of_its_own_is_told_where_the_store_is(s3: S3Server) -> None:
    """In the cluster the application's confs are in its SparkApplication, and a Job knows nothing of them."""
    (s3.folder / "never-drained").mkdir()
    (s3.folder / "never-drained/metadata").write_text('{"id":"6b6d3c6e-0a51-4a71-8a63-0f5b1c0e9a11"}')
    told = [f"--conf={name}={value}" for name, value in {"spark.jars": ",".join(jars.s3a()), **confs(s3.proxy.port)}.items()]
    command = [sys.executable, "-m", "spark_drain_agent", "resume", f"s3a://{BUCKET}/never-drained", "--from=archive", *told]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "this query was never drained" in done.stderr) == (1, True), done.stderr


def _bucket(base: Path) -> str:
    return (base / "bucket").read_text()


def _objects(base: Path) -> set[Path]:
    return {path for path in (base / "checkpoints").resolve().rglob("*") if path.is_file()}
