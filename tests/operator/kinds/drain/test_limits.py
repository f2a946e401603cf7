"""The times at which patience ends, as tables."""

from typing import Any

import pytest
from spark_drain_operator.kinds.drain import limits
from spark_drain_operator.storage.pods import DriverPod
from spark_drain_store import DrainState

from tests.operator.kinds.drain.samples import NOW, at, driver, report, spec, status


@pytest.mark.parametrize(
    ("wish", "known", "pod", "answered", "expected"),
    [
        ({}, {}, None, False, limits.Limits()),
        ({"expiration": at(9)}, {}, None, False, limits.Limits(expiration=at(9))),
        ({}, {"notification_time": at(-5)}, driver(), False, limits.Limits(acknowledgement=at(60))),
        ({}, {"notification_time": at(5)}, driver(), False, limits.Limits(acknowledgement=at(65))),
        ({}, {"notification_time": at(5)}, driver(phase="Pending"), False, limits.Limits()),
        ({}, {"notification_time": at(5)}, None, False, limits.Limits()),
        ({"expiration": at(9)}, {"notification_time": at(5)}, driver(), True, limits.Limits(expiration=at(9))),
        ({"timeout": 10, "expiration": at(1)}, {"start_time": at(2)}, driver(), True, limits.Limits(deadline=at(12))),
        ({"timeout": 10}, {"start_time": at(2), "scale_down_time": at(11)}, None, True, limits.Limits(deadline=at(131))),
    ],
)
def test_limits(wish: dict[str, Any], known: dict[str, Any], pod: DriverPod | None, answered: bool, expected: limits.Limits) -> None:
    given = report(DrainState.ACKNOWLEDGED) if answered else None
    assert limits.limits_of(spec(**wish), status(**known), pod, given) == expected


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (limits.Limits(), None),
        (limits.Limits(deadline=at(5)), 5.0),
        (limits.Limits(deadline=at(-5)), 0.0),
        (limits.Limits(expiration=at(9), acknowledgement=at(3)), 3.0),
    ],
)
def test_next_limit(given: limits.Limits, seconds: float | None) -> None:
    assert limits.next_limit(given, NOW) == seconds
