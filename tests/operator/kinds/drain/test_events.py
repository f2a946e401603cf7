"""Which Events a pass makes: each is a request."""

from datetime import UTC, datetime

import pytest
from spark_drain_operator.kinds.drain.events import events_of
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason
from spark_drain_operator.kinds.drain.status import DrainStatus

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ACCEPTED = (ConditionType.ACCEPTED, "True", Reason.ACCEPTED)
ASKED = (ConditionType.ACKNOWLEDGED, "Unknown", Reason.WAITING_FOR_AGENT)
ANSWERED = (ConditionType.ACKNOWLEDGED, "True", Reason.AGENT_ANSWERED)
STOPPED = (ConditionType.SOURCES_STOPPED, "True", Reason.COMPLETED)
FLUSHED = (ConditionType.FLUSHED, "True", Reason.COMPLETED)
COMPLETE = (ConditionType.EXECUTORS_DRAINED, "True", Reason.COMPLETED)
REQUESTED = (ConditionType.SCALED_DOWN, "False", Reason.SCALE_DOWN_REQUESTED)
UNACCOUNTED = (ConditionType.EXECUTORS_DRAINED, "False", Reason.EXECUTORS_UNACCOUNTED)


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        ([ACCEPTED, ASKED], []),
        ([ACCEPTED, ANSWERED], [("Normal", "Acknowledged", "AgentAnswered")]),
        ([ANSWERED, FLUSHED], [("Normal", "Flushed", "AgentAnswered; Completed")]),
        ([STOPPED], []),
        ([STOPPED, FLUSHED], [("Normal", "Flushed", "Completed")]),
        ([FLUSHED, UNACCOUNTED], [("Normal", "Flushed", "Completed"), ("Warning", "ExecutorsUnaccounted", "ExecutorsUnaccounted")]),
        ([FLUSHED, COMPLETE], []),
        ([REQUESTED], []),
    ],
)
def test_what_goes_well_is_told_once(happened: list[tuple[str, str, str]], expected: list[tuple[str, str, str]]) -> None:
    before, after = (DrainStatus(generation=1, now=NOW) for _ in range(2))
    for type_, status, reason in happened:
        after.set(type_, status, reason, str(reason))
    assert [tuple(event) for event in events_of(before, after)] == expected
