"""What becomes of the notification, as a table."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from spark_drain_operator.kinds.drain.steps import request
from spark_drain_store import DrainNotification, DrainReport, DrainState

from tests.operator.kinds.drain.samples import NOW, driver, notification, report

MINE = notification("mine", run_id="one")


OTHER = notification("other", run_id="one")


GAVE_UP = report(DrainState.FAILED, drain_id="other", reason="DeadlineExceeded")


PLAN = notification("plan", run_id="one", options={"execution": "PlanOnly"})


@pytest.mark.parametrize(
    ("notifications", "reports", "fields", "expected"),
    [
        ([], [], {}, ("WRITE", "")),
        ([], [], {"driver": None}, ("WAIT_FOR_DRIVER", "")),
        ([], [], {"written_before": True}, ("REMOVED", "")),
        ([OTHER], [], {}, ("BLOCKED", "other")),
        ([OTHER], [report(DrainState.FLUSHING, drain_id="other")], {}, ("BLOCKED", "other")),
        ([OTHER], [report(DrainState.DRAINED, drain_id="other")], {}, ("BLOCKED", "other")),
        ([OTHER], [report(DrainState.WITHDRAWN, drain_id="other")], {}, ("WRITE", "")),
        ([OTHER], [report(DrainState.FAILED, drain_id="other")], {}, ("WRITE", "")),
        ([OTHER], [GAVE_UP], {}, ("WRITE", "")),
        ([replace(OTHER, deadline=NOW + timedelta(seconds=5))], [GAVE_UP], {}, ("BLOCKED", "other")),
        ([replace(OTHER, deadline=NOW - timedelta(seconds=90))], [GAVE_UP], {}, ("WRITE", "")),
        ([PLAN], [report(DrainState.ACKNOWLEDGED, drain_id="plan")], {}, ("WAIT_FOR_PLAN", "plan")),
        ([MINE, OTHER], [], {}, ("KEEP", "")),
        ([MINE], [], {"written_before": True}, ("KEEP", "")),
        ([MINE], [], {"driver": None}, ("WAIT_FOR_DRIVER", "")),
        ([MINE], [report(DrainState.FLUSHING)], {"driver": None}, ("KEEP", "")),
        ([MINE], [], {"driver": driver("two")}, ("REBIND", "")),
        ([MINE], [], {"driver": driver("two"), "other_driver_alive": True}, ("WAIT_FOR_DRIVER", "")),
        ([MINE], [report(DrainState.ACKNOWLEDGED)], {"driver": driver("two")}, ("KEEP", "")),
        ([notification("mine", run_id="one", withdrawn=True)], [], {"driver": driver("two")}, ("KEEP", "")),
    ],
)
def test_request(
    notifications: list[DrainNotification], reports: list[DrainReport], fields: dict[str, Any], expected: tuple[str, str]
) -> None:
    given: dict[str, Any] = {"written_before": False, "driver": driver("one"), "other_driver_alive": False, **fields}
    decision = request.decide(
        drain_id="mine",
        notifications={each.drain_id: each for each in notifications},
        reports={each.drain_id: each for each in reports},
        now=NOW,
        **given,
    )
    assert (decision.action.name, decision.other) == expected
