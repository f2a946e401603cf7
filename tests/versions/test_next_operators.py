"""The empty state of every operator, with both providers, on every supported release: a matrix of the semantics suite under it."""

from __future__ import annotations

import pytest

from tests.semantics import test_next_operators as matrix
from tests.versions.under import under
from tools import sparks

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("part", ["not soak", "soak"])
@pytest.mark.parametrize("release", sparks.RELEASES)
def test_an_incompatible_version_under_ids_that_go_on(release: str, part: str) -> None:
    under(release, str(matrix.__file__), "-m", part)
