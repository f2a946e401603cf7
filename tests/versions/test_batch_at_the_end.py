"""A query that waits for its lock while it is told to end: Spark 3.5 then runs the batch that it plans to its commit, later ones do not."""

from __future__ import annotations

import pytest

from tests.agent.drain import test_batch_at_the_end as late
from tests.versions.under import under
from tools import sparks

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.mark.parametrize("release", sparks.RELEASES)
def test_the_batch_that_it_plans_is_not_taken_for_the_flush(release: str) -> None:
    under(release, str(late.__file__), "-m", "soak")
