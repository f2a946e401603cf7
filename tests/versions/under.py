"""Tests of the repository run under another Spark release."""

import os
import subprocess
import sys

from tests.workshop.repository import ROOT
from tools import sparks

__all__ = ["under"]

_OLDER_PYSPARKS_WARN = ("pytest.PytestUnraisableExceptionWarning", "ResourceWarning", "DeprecationWarning")


def under(release: str, *arguments: str) -> None:
    """Run pytest with such arguments, with the pyspark of a release on its path; fail unless tests have run, and passed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SPARK_"))}
    warnings = [f"-Wignore::{each}" for each in _OLDER_PYSPARKS_WARN]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *warnings, *arguments],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(sparks.install(release))},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-8000:]
    assert " passed" in ran.stdout
