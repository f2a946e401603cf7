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
