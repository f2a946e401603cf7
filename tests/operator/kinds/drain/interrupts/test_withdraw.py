"""Who wants a drain to end, and whether it may, as tables."""

import pytest
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain.interrupts import withdraw
from spark_drain_operator.kinds.drain.reasons import Phase, Reason
from spark_drain_store import DrainReport, DrainState

from tests.operator.kinds.drain.samples import report, spec, status

CANCEL = Ending(Phase.CANCELLED, Reason.CANCEL_REQUESTED, "")


TIMEOUT = Ending(Phase.TIMED_OUT, Reason.DEADLINE_EXCEEDED, "")


SILENCE = Ending(Phase.FAILED, Reason.AGENT_NOT_RESPONDING, "")


CHANGED = Ending(Phase.FAILED, Reason.SPEC_CHANGED, "")


LATE = Ending(Phase.DRAINED, Reason.WITHDRAWAL_TOO_LATE, "")


@pytest.mark.parametrize(
    ("before", "deleted", "cancel", "limit", "expected"),
    [
        (None, False, False, None, None),
        (None, False, True, None, Reason.CANCEL_REQUESTED),
        (None, True, True, None, Reason.DELETED),
        (None, False, False, SILENCE, Reason.AGENT_NOT_RESPONDING),
        (None, False, True, SILENCE, Reason.CANCEL_REQUESTED),
        (None, False, True, TIMEOUT, Reason.DEADLINE_EXCEEDED),
        (None, True, True, CHANGED, Reason.SPEC_CHANGED),
        (LATE, False, False, CHANGED, None),
        (TIMEOUT, False, True, None, Reason.DEADLINE_EXCEEDED),
        (LATE, False, True, None, None),
        (LATE, True, False, None, None),
        (LATE, False, True, TIMEOUT, Reason.DEADLINE_EXCEEDED),
    ],
)
def test_withdrawal_wanted(before: Ending | None, deleted: bool, cancel: bool, limit: Ending | None, expected: str | None) -> None:
    ending = withdraw.wanted(status(withdrawal=before), deleted=deleted, cancel=cancel, limit=limit)
    assert (None if ending is None else ending.reason) == expected


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        (Ending(Phase.CANCELLED, Reason.CANCEL_REQUESTED, "spec.cancel was set"), "spec.cancel was set; the flush has begun; "),
        (Ending(Phase.FAILED, Reason.SPEC_CHANGED, "given up"), "another run of the application has started; the flush has begun; "),
        (Ending(Phase.REJECTED, Reason.STALE_RUN_ID, "stale"), "another run of the application has started; the flush has begun; "),
    ],
)
def test_what_is_noted_of_a_wish_that_comes_too_late(ending: Ending, message: str) -> None:
    noted = withdraw.too_late(ending)
    assert (noted.phase, noted.reason) == (Phase.DRAINED, Reason.WITHDRAWAL_TOO_LATE)
    assert noted.message.startswith(message)


@pytest.mark.parametrize(
    ("run_id", "next_run_id", "committed", "expected"),
    [
        (None, "", False, None),
        (None, "two", False, (Phase.FAILED, Reason.SPEC_CHANGED)),
        ("one", "two", False, (Phase.REJECTED, Reason.STALE_RUN_ID)),
        (None, "two", True, None),
        ("one", "two", True, None),
    ],
)
def test_superseded(run_id: str | None, next_run_id: str, committed: bool, expected: tuple[str, str] | None) -> None:
    ending = withdraw.superseded(spec(run_id=run_id), next_run_id, committed=committed)
    assert (None if ending is None else (ending.phase, ending.reason)) == expected


@pytest.mark.parametrize(
    ("ending", "given", "fields", "answer"),
    [
        (CANCEL, None, {"notified": False}, "END"),
        (CANCEL, None, {}, "END"),
        (CANCEL, None, {"malformed": True}, "WAIT"),
        (CANCEL, None, {"malformed": True, "driver_alive": False}, "END"),
        (SILENCE, None, {"malformed": True}, "END"),
        (CANCEL, report(DrainState.ACKNOWLEDGED), {}, "WAIT"),
        (CANCEL, report(DrainState.STOPPING), {}, "WAIT"),
        (CANCEL, report(DrainState.STOPPING), {"driver_alive": False}, "END"),
        (CANCEL, report(DrainState.WITHDRAWN), {}, "END"),
        (CANCEL, report(DrainState.COMMITTING), {}, "TOO_LATE"),
        (CANCEL, report(DrainState.COMMITTING), {"driver_alive": False}, "TOO_LATE"),
        (CANCEL, report(DrainState.STALLED), {}, "TOO_LATE"),
        (CANCEL, report(DrainState.DRAINED), {}, "TOO_LATE"),
        (CANCEL, report(DrainState.STOPPING, withdrawal="TooLate"), {}, "TOO_LATE"),
        (TIMEOUT, report(DrainState.STOPPING), {}, "WAIT"),
        (TIMEOUT, report(DrainState.FLUSHING), {}, "END"),
        (TIMEOUT, report(DrainState.STALLED), {}, "END"),
        (SILENCE, report(DrainState.ACKNOWLEDGED), {}, "WAIT"),
        (CANCEL, None, {"forward_only": True}, "TOO_LATE"),
        (CANCEL, None, {"forward_only": True, "malformed": True, "driver_alive": False}, "TOO_LATE"),
        (TIMEOUT, None, {"forward_only": True}, "END"),
    ],
)
def test_withdrawal_answered(ending: Ending, given: DrainReport | None, fields: dict[str, bool], answer: str) -> None:
    past = given is not None and given.state.forward_only
    facts = {"malformed": False, "notified": True, "driver_alive": True, "forward_only": past, **fields}
    assert withdraw.decide(ending, given, **facts).name == answer
