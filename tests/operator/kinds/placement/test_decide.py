"""Decisions of a placement, by table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from spark_drain_operator.kinds.placement.decide import answered, give_up_at, phase_of, replaced_before_the_end
from spark_drain_operator.kinds.placement.reasons import Phase
from spark_drain_store.placement_messages import PlacementResponse, PlacementStatus

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RESPONSE = PlacementResponse(placement_id="p", status=PlacementStatus.IN_PROGRESS, updated_at=NOW, message="why")


@pytest.mark.parametrize(
    ("status", "wish", "phase", "reason"),
    [
        (PlacementStatus.CREATED, "", None, ""),
        (PlacementStatus.ACCEPTED, "Deleted", None, ""),
        (PlacementStatus.IN_PROGRESS, "", None, ""),
        (PlacementStatus.SUCCEEDED, "", Phase.SUCCEEDED, "Succeeded"),
        (PlacementStatus.SUCCEEDED, "CancelRequested", Phase.SUCCEEDED, "Succeeded"),
        (PlacementStatus.FAILED, "", Phase.FAILED, "NotReplaced"),
        (PlacementStatus.FAILED, "CancelRequested", Phase.CANCELLED, "CancelRequested"),
        (PlacementStatus.BAD_REQUEST, "", Phase.REJECTED, "BadRequest"),
        (PlacementStatus.BAD_REQUEST, "Deleted", Phase.CANCELLED, "Deleted"),
    ],
)
def test_what_an_answer_ends(status: PlacementStatus, wish: str, phase: Phase | None, reason: str) -> None:
    ending = answered(replace(RESPONSE, status=status), wish)
    assert (ending is None) == (phase is None)
    if ending is not None:
        assert (ending.phase, ending.reason, ending.message) == (phase, reason, "why")


@pytest.mark.parametrize("wish", ["", "Deleted"])
def test_an_executor_that_was_ended_without_a_new_one_is_told(wish: str) -> None:
    ending = answered(replace(RESPONSE, status=PlacementStatus.FAILED, decommissioned=True), wish)
    assert ending is not None
    assert (ending.phase, ending.reason) == (Phase.FAILED, "Decommissioned")


@pytest.mark.parametrize(("replaced", "phase"), [(True, Phase.SUCCEEDED), (False, None)])
def test_a_run_that_ends_after_it_has_replaced_the_executor(replaced: bool, phase: Phase | None) -> None:
    ending = replaced_before_the_end(replace(RESPONSE, replaced=replaced))
    assert (ending and ending.phase) == phase
    assert replaced_before_the_end(None) is None


def test_no_answer_ends_nothing() -> None:
    assert answered(None, "Deleted") is None
    assert phase_of(None) is Phase.PENDING


def test_every_status_is_a_phase_or_an_end() -> None:
    for status in PlacementStatus:
        response = replace(RESPONSE, status=status)
        assert (phase_of(response) is None) == (answered(response, "") is not None)


@pytest.mark.parametrize(
    ("response", "seconds"),
    [(None, 60), (RESPONSE, 60), (replace(RESPONSE, node="node-2"), 360)],
    ids=["no answer", "the new executor is not there", "the new executor is there"],
)
def test_how_long_a_withdrawal_waits(response: PlacementResponse | None, seconds: int) -> None:
    assert give_up_at(NOW, 60, response) == NOW + timedelta(seconds=seconds)
