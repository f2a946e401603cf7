"""Conditions keep to the API conventions."""

from datetime import UTC, datetime, timedelta

import pytest
from spark_drain_operator.engine.conditions import Conditions
from spark_drain_operator.kinds.drain.reasons import ConditionType

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_the_time_of_a_condition_changes_with_its_status_only() -> None:
    conditions = Conditions(tuple(ConditionType))
    conditions.set(ConditionType.FLUSHED, "False", "InProgress", "one", time=NOW, generation=1)
    conditions.set(ConditionType.FLUSHED, "False", "FlushStalled", "two", time=NOW + timedelta(seconds=5), generation=1)
    stalled = conditions.get(ConditionType.FLUSHED)
    assert stalled is not None
    assert (stalled.reason, stalled.last_transition_time) == ("FlushStalled", NOW)
    conditions.set(ConditionType.FLUSHED, "True", "Completed", "three", time=NOW + timedelta(seconds=9), generation=1)
    done = conditions.get(ConditionType.FLUSHED)
    assert done is not None
    assert done.last_transition_time == NOW + timedelta(seconds=9)


@pytest.mark.parametrize(
    ("reason", "written"), [("State would be lost!", "Statewouldbelost"), ("", "Unspecified"), ("9lives", "lives"), ("Fine", "Fine")]
)
def test_a_reason_that_the_schema_would_refuse_is_cleaned(reason: str, written: str) -> None:
    conditions = Conditions(tuple(ConditionType))
    conditions.set(ConditionType.ACCEPTED, "False", reason, "", time=NOW, generation=1)
    assert [condition.reason for condition in conditions] == [written]
