"""The driver that is to be drained, as a table."""

from typing import Any

import pytest
from spark_drain_operator.applications.protocol import Application
from spark_drain_operator.engine.outcome import Ended, Waiting
from spark_drain_operator.kinds.drain.reasons import Phase, Reason
from spark_drain_operator.kinds.drain.steps import find_run
from spark_drain_operator.storage.pods import DriverPod

from tests.operator.kinds.drain.samples import application, driver, spec

GONE = application("COMPLETED", driver(phase="Succeeded"))


@pytest.mark.parametrize(
    ("wish", "seen", "expected"),
    [
        ({}, application("RUNNING", driver()), "one"),
        ({}, application("SUBMITTED", driver(phase="Pending")), "one"),
        ({"run_id": "one"}, application("RUNNING", driver()), "one"),
        ({"run_id": "zero"}, application("RUNNING", driver()), (Phase.REJECTED, Reason.STALE_RUN_ID)),
        ({}, application("RUNNING", driver(terminating=True)), None),
        ({}, None, None),
        ({}, GONE, None),
        ({"if_not_running": "Succeed"}, None, (Phase.NOTHING_TO_DRAIN, Phase.NOTHING_TO_DRAIN)),
        ({"if_not_running": "Succeed"}, GONE, (Phase.NOTHING_TO_DRAIN, Phase.NOTHING_TO_DRAIN)),
        ({"if_not_running": "Succeed"}, application("SUSPENDED", suspend=True), (Phase.NOTHING_TO_DRAIN, Phase.NOTHING_TO_DRAIN)),
        ({"if_not_running": "Succeed"}, application("SUSPENDED", driver(terminating=True), suspend=True), None),
        ({"if_not_running": "Succeed"}, application("SUBMITTED"), None),
        ({"if_not_running": "Reject"}, None, (Phase.REJECTED, Reason.APPLICATION_NOT_FOUND)),
        ({"if_not_running": "Reject"}, GONE, (Phase.REJECTED, Reason.APPLICATION_NOT_RUNNING)),
        ({"if_not_running": "Reject"}, application("PENDING_RERUN"), None),
    ],
)
def test_find_run(wish: dict[str, Any], seen: Application | None, expected: Any) -> None:
    decision = find_run.decide(spec(**wish), seen, "ns")
    if isinstance(expected, tuple):
        assert isinstance(decision, Ended)
        assert (decision.ending.phase, decision.ending.reason) == expected
    elif expected is None:
        assert isinstance(decision, Waiting)
    else:
        assert isinstance(decision, DriverPod)
        assert decision.run_id == expected
