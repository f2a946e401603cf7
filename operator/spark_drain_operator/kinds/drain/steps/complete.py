"""Step: everything is done."""

from __future__ import annotations

from spark_drain_operator.engine.outcome import Ended, ended
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import Phase

__all__ = ["run"]

_DONE = {"Suspend": "the application is suspended", "Delete": "the application is deleted", "Keep": "the application keeps running"}


def run(drain: DrainPass) -> Ended:
    """End the drain, and say what it has come to."""
    numbers = drain.status.progress
    return ended(
        Phase.DRAINED,
        Phase.DRAINED,
        f"{numbers.get('queries', '0/0')} queries and {numbers.get('executors', '0/0')} executors drained; "
        f"{_DONE[drain.spec.after_drain]}; end offsets are in ConfigMap {drain.status.result_name}",
    )
