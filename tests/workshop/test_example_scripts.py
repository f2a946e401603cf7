"""The scripts of examples/placements where there is nothing to do: a name that is mistyped, perhaps."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.apiserver import ROOT


@pytest.mark.parametrize(
    ("script", "argument", "code", "said"),
    [
        ("rolling-restart.sh", "clciks", 1, "no executor of application clciks runs in namespace pipelines"),
        ("clear-node.sh", "node-1", 0, "no executor of a SparkApplication of namespace pipelines runs on node-1"),
    ],
)
def test_that_no_executor_was_found_is_said(tmp_path: Path, script: str, argument: str, code: int, said: str) -> None:
    (tmp_path / "kubectl").write_text("#!/bin/sh\n")
    (tmp_path / "kubectl").chmod(0o755)
    command = ["sh", str(ROOT / "examples/placements" / script), "pipelines", argument]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, f"{said}\n")


@pytest.mark.parametrize(("script", "missing"), [("rolling-restart.sh", "APPLICATION"), ("clear-node.sh", "NODE")])
def test_an_argument_that_is_missing_is_named(script: str, missing: str) -> None:
    done = subprocess.run(["sh", str(ROOT / "examples/placements" / script), "pipelines"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"{missing} must be given" in done.stderr
