"""The end of an object."""

from datetime import UTC, datetime, timedelta

import pytest
from spark_drain_operator.engine.ending import seconds_to_live

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("ttl", "left"), [(None, None), (0, 0.0), (60, 50.0), (5, 0.0)])
def test_time_to_live(ttl: int | None, left: float | None) -> None:
    assert seconds_to_live(ttl, NOW, NOW + timedelta(seconds=10)) == left


def test_a_time_after_the_last_of_all_years_is_never_reached() -> None:
    last = datetime(9999, 12, 31, tzinfo=UTC)
    assert seconds_to_live(2**31 - 1, last, NOW) == (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - NOW).total_seconds()
