"""What is done to an application that is drained, as a table."""

from datetime import timedelta
from typing import Any

import pytest
from spark_drain_operator.kinds.drain.steps import scale_down
from spark_drain_operator.storage.pods import PodName

from tests.operator.kinds.drain.samples import NOW, application, driver

POD = PodName("app-driver", "")


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        ({"application": application("RUNNING", driver())}, "SUSPEND"),
        ({"application": application("COMPLETED", driver(phase="Succeeded"))}, "SUSPEND"),
        ({"application": application("PENDING_RERUN")}, "WAIT"),
        ({"application": application("PENDING_RERUN"), "forced": True}, "SUSPEND"),
        ({"application": application("FAILING", driver(phase="Failed"))}, "WAIT"),
        ({"application": application("RUNNING", driver(), suspend=True), "left_over": [POD]}, "WAIT"),
        ({"application": application("SUSPENDED", driver(terminating=True), suspend=True), "left_over": [POD]}, "WAIT"),
        ({"application": application("SUSPENDED", suspend=True), "left_over": [POD]}, "WAIT"),
        ({"application": application("SUSPENDED", driver(phase="Failed"), suspend=True)}, "WAIT"),
        ({"application": application("SUSPENDING", suspend=True)}, "WAIT"),
        ({"application": application("SUSPENDED", suspend=True)}, "DONE"),
        ({"application": application("COMPLETED", driver(phase="Succeeded"), suspend=True), "requested_in": "COMPLETED"}, "DONE"),
        ({"application": application("SUSPENDED", suspend=True), "requested_in": "PENDING_RERUN"}, "WAIT"),
        ({"application": application("SUSPENDED", suspend=True), "requested_in": "PENDING_RERUN", "after_seconds": 31}, "DONE"),
        ({"application": application("RUNNING", driver()), "after": "Delete"}, "DELETE"),
        ({"application": application("RUNNING", driver()), "after": "Delete", "forced": True}, "SUSPEND"),
        ({"application": None, "after": "Delete", "left_over": [POD]}, "WAIT"),
        ({"application": None, "after": "Delete"}, "DONE"),
    ],
)
def test_scale_down(fields: dict[str, Any], action: str) -> None:
    given: dict[str, Any] = {"after": "Suspend", "forced": False, "left_over": [], "requested": NOW, "requested_in": "RUNNING", **fields}
    now = NOW + timedelta(seconds=given.pop("after_seconds", 1))
    assert scale_down.decide(**given, now=now).name == action
