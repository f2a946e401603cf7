"""Whether a planned drain goes on, as a table."""

from typing import Any

import pytest
from spark_drain_operator.kinds.drain.steps import approve
from spark_drain_store import DrainReport, DrainState

from tests.operator.kinds.drain.samples import report, spec


@pytest.mark.parametrize(
    ("wish", "given", "expected"),
    [
        ({}, report(DrainState.ACKNOWLEDGED), approve.Go.GO),
        ({"execution": "AfterApproval"}, report(DrainState.ACKNOWLEDGED), approve.Go.PLANNING),
        ({"execution": "AfterApproval"}, report(DrainState.ACKNOWLEDGED, reason="AwaitingApproval"), approve.Go.ASK),
        ({"execution": "AfterApproval", "approved": True}, report(DrainState.ACKNOWLEDGED), approve.Go.GO),
        ({"execution": "AfterApproval"}, report(DrainState.FLUSHING), approve.Go.GO),
        ({"execution": "PlanOnly"}, report(DrainState.ACKNOWLEDGED), approve.Go.PLANNING),
        ({"execution": "PlanOnly"}, report(DrainState.ACKNOWLEDGED, reason="Planned"), approve.Go.PLANNED),
    ],
)
def test_approve(wish: dict[str, Any], given: DrainReport, expected: approve.Go) -> None:
    assert approve.decide(spec(**wish), given) is expected
