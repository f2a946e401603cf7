"""What a drain notification asks for at the moment."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from spark_drain_agent.drain.request import Request
from spark_drain_store import DrainNotification

NOTIFICATION = DrainNotification(drain_id="d", created_at=datetime(2026, 11, 24, tzinfo=UTC), run_id=None, mode="Drain", options={})


@pytest.mark.parametrize(
    ("execution", "approved", "only_planned"),
    [
        ("", False, False),
        ("Immediate", False, False),
        ("PlanOnly", False, True),
        ("AfterApproval", False, True),
        ("AfterApproval", True, False),
    ],
)
def test_what_is_only_planned(execution: str, approved: bool, only_planned: bool) -> None:
    options = {"execution": execution} if execution else {}
    request = Request(replace(NOTIFICATION, options=options), lambda: False)
    request.update(replace(NOTIFICATION, options=options, approved=approved))
    assert request.only_planned is only_planned
