"""The empty state of every operator, with both providers, on every supported release: a matrix of the semantics suite under it."""

from __future__ import annotations

import pytest

from tests.semantics import test_next_operators as matrix
from tests.versions.under import under
from tools import sparks

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]

SAMPLE, REST = "not soak", "soak"
RUNS = [
    pytest.param(release, part, marks=() if part == SAMPLE and release == sparks.RELEASES[0] else pytest.mark.soak)
    for release in sparks.RELEASES
    for part in (SAMPLE, REST)
]


@pytest.mark.parametrize(("release", "part"), RUNS)
def test_an_incompatible_version_under_ids_that_go_on(release: str, part: str) -> None:
    under(release, str(matrix.__file__), "-m", part)
