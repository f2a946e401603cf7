"""The empty state of every operator, with both providers, on every supported release: a matrix of the semantics suite under it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.semantics import test_next_operators as matrix
from tests.workshop.repository import ROOT
from tools import sparks

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]

_OLDER_PYSPARKS_WARN = ("pytest.PytestUnraisableExceptionWarning", "ResourceWarning", "DeprecationWarning")


SAMPLE, REST = "not soak", "soak"
RUNS = [
    pytest.param(release, part, marks=() if part == SAMPLE and release == sparks.RELEASES[0] else pytest.mark.soak)
    for release in sparks.RELEASES
    for part in (SAMPLE, REST)
]


@pytest.mark.parametrize(("release", "part"), RUNS)
def test_an_incompatible_version_under_ids_that_go_on(release: str, part: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SPARK_"))}
    warnings = [f"-Wignore::{each}" for each in _OLDER_PYSPARKS_WARN]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *warnings, "-m", part, str(matrix.__file__)],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(sparks.install(release))},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-8000:]
    assert " passed" in ran.stdout
