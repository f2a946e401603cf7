"""What the conditions say of a drain that goes on, and of one that has ended."""

from datetime import UTC, datetime

import pytest
from spark_drain_operator.engine.activity import mark_active
from spark_drain_operator.engine.ending import conclude
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain.events import events_of
from spark_drain_operator.kinds.drain.phases import mark_pending, settle
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason
from spark_drain_operator.kinds.drain.status import DrainStatus

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("phase", "succeeded", "stalled"),
    [
        (Phase.DRAINED, "True", "False"),
        (Phase.PLANNED, "True", "False"),
        (Phase.FAILED, "False", "True"),
        (Phase.FORCE_STOPPED, "False", "True"),
    ],
)
def test_every_end_is_final(phase: Phase, succeeded: str, stalled: str) -> None:
    before, after = DrainStatus(generation=1, now=NOW), DrainStatus(generation=1, now=NOW)
    ending = Ending(phase, "Why", "because")
    settle(after, ending)
    conclude(after, ending)
    found = {condition.type: condition.status for condition in after.conditions}
    assert found[ConditionType.FINISHED] == "True"
    assert found[ConditionType.SUCCEEDED] == succeeded
    assert found[ConditionType.STALLED] == stalled
    assert found[ConditionType.RECONCILING] == "False"
    kind = "Normal" if phase.successful else "Warning"
    assert [tuple(event) for event in events_of(before, after)] == [(kind, str(phase), "because")]


def test_what_is_stalled_makes_a_warning() -> None:
    before, after = DrainStatus(generation=1, now=NOW), DrainStatus(generation=1, now=NOW)
    after.set(ConditionType.STALLED, "True", Reason.WAITING_FOR_REPORT, "because")
    assert [tuple(event) for event in events_of(before, after)] == [("Warning", "WaitingForReport", "because")]


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ([], "Flushing"),
        ([(ConditionType.ACCEPTED, "Unknown", Reason.WAITING_FOR_DRIVER)], "WaitingForDriver"),
        (
            [(ConditionType.ACCEPTED, "True", Reason.ACCEPTED), (ConditionType.ACKNOWLEDGED, "Unknown", Reason.WAITING_FOR_AGENT)],
            "WaitingForAgent",
        ),
        ([(ConditionType.ACCEPTED, "True", Reason.ACCEPTED), (ConditionType.ACKNOWLEDGED, "True", Reason.AGENT_ANSWERED)], "Flushing"),
        ([(ConditionType.ACCEPTED, "True", Reason.ACCEPTED), (ConditionType.STALLED, "True", Reason.FLUSH_STALLED)], "FlushStalled"),
    ],
)
def test_an_active_drain_says_what_holds_it_up(conditions: list[tuple[ConditionType, str, Reason]], reason: str) -> None:
    status = DrainStatus(generation=1, now=NOW)
    for condition in conditions:
        status.set(*condition)
    status.phase = Phase.FLUSHING
    mark_pending(status, "message")
    mark_active(status, "message")
    found = status.conditions.get(ConditionType.SUCCEEDED)
    assert found is not None
    assert (found.status, found.reason) == ("Unknown", reason)
