"""The status of a drain."""

from datetime import UTC, datetime

from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason
from spark_drain_operator.kinds.drain.status import DrainStatus

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_status_survives_being_written_and_read() -> None:
    status = DrainStatus(generation=4, now=NOW, phase=Phase.FLUSHING, message="m", run_id="r", drain_id="u", notification_attempt=2)
    status.notification_time = status.start_time = status.scale_down_time = NOW
    status.scale_down_state = "RUNNING"
    status.withdrawal = Ending(Phase.CANCELLED, Reason.CANCEL_REQUESTED, "asked")
    status.withdrawal_time = NOW
    status.outcome = Ending(Phase.DRAINED, "Drained", "done")
    status.set(ConditionType.ACCEPTED, "True", Reason.ACCEPTED, "yes")
    written = status.as_object()
    body = {"metadata": {"generation": 4}, "status": written}
    assert DrainStatus.read(body, NOW).as_object() == written
    assert DrainStatus.read({"metadata": {"generation": 1}}, NOW).as_object() == {"observedGeneration": 1, "phase": "Pending"}


def test_what_somebody_has_written_into_a_status_is_not_believed_and_wedges_nothing() -> None:
    found = DrainStatus.read(
        {
            "metadata": {"generation": 1},
            "status": {
                "phase": "OfALaterVersion",
                "outcome": {"phase": "Done", "reason": "x", "message": "y"},
                "withdrawal": {"reason": "x", "requestedAt": "yesterday"},
                "startTime": "0000-01-01T10:00:00Z",
                "conditions": [
                    {"type": "Accepted", "status": "True", "reason": "x", "message": "y", "lastTransitionTime": "0000-01-01T10:00:00Z"}
                ],
            },
        },
        NOW,
    )
    assert found.phase is Phase.PENDING
    assert (found.outcome, found.withdrawal, found.withdrawal_time, found.start_time) == (None, None, None, None)
    assert [condition.last_transition_time for condition in found.conditions] == [NOW]
