"""The end of an object."""

from datetime import UTC, datetime, timedelta

import pytest
from spark_drain_operator.engine.ending import seconds_to_live

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("ttl", "left"), [(None, None), (0, 0.0), (60, 50.0), (5, 0.0)])
def test_time_to_live(ttl: int | None, left: float | None) -> None:
    assert seconds_to_live(ttl, NOW, NOW + timedelta(seconds=10)) == left
