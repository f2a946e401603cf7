"""Step: the end offsets outlive the application."""

from __future__ import annotations

import json

from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.progress import end_offsets
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason, message_of
from spark_drain_operator.storage.results import ResultNameTakenError

__all__ = ["run"]

_RECHECK_SECONDS = 5.0  # a ConfigMap that is in the way is not watched


def run(drain: DrainPass) -> Outcome:
    """Write the result ConfigMap once."""
    status, report = drain.status, drain.report
    assert report is not None
    name = f"{drain.name}-result"
    if status.result_name == name:
        return DONE
    data = {
        "report.json": json.dumps(report.as_object(), indent=2),
        "end-offsets.json": json.dumps(end_offsets(report), indent=2),
    }
    try:
        drain.cluster.results.write(drain.body, name, data)
    except ResultNameTakenError:
        message = message_of(Reason.RESULT_NAME_TAKEN, name=name)
        status.set(ConditionType.STALLED, "True", Reason.RESULT_NAME_TAKEN, message)
        return Waiting(_RECHECK_SECONDS, message)
    status.result_name = name
    return DONE
