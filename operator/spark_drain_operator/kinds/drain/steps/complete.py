"""Step: everything is done."""

from __future__ import annotations

from spark_drain_operator.engine.outcome import Ended, ended
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason

__all__ = ["run"]

_DONE = {
    Reason.APPLICATION_SUSPENDED: "the application is suspended",
    Reason.APPLICATION_DELETED: "the application is deleted",
    Reason.APPLICATION_RESTARTED: "the application is started again",
    Reason.APPLICATION_RESUMED: "somebody has resumed or changed the application since, and it is left alone",
    Reason.NOT_REQUESTED: "the application keeps running",
}


def run(drain: DrainPass) -> Ended:
    """End the drain, and say what it has come to."""
    status = drain.status
    scaled_down = status.conditions.get(ConditionType.SCALED_DOWN)
    assert scaled_down is not None
    numbers, name = status.progress, status.result_name
    gone = "end offsets were not kept: the report was gone before they could be"
    offsets = f"end offsets are in ConfigMap {name}" if name else drain.unkept or gone
    return ended(
        Phase.DRAINED,
        Phase.DRAINED,
        f"{numbers.get('queries', '0/0')} queries and {numbers.get('executors', '0/0')} executors drained; "
        f"{_DONE.get(Reason(scaled_down.reason), scaled_down.message)}; {offsets}",
    )
