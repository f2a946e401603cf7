"""Step: the end offsets outlive the application."""

from __future__ import annotations

import json

from spark_drain_store import DrainState

from spark_drain_operator.clock import later
from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting
from spark_drain_operator.kinds.drain.limits import PATIENCE_SECONDS
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.progress import end_offsets, without_offsets
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason, message_of
from spark_drain_operator.storage.results import ResultNameTakenError

__all__ = ["run"]

_RECHECK_SECONDS = 5.0  # a ConfigMap that is in the way is not watched


def _json(value: object) -> str:
    """Return it without spaces: together both have to fit into one ConfigMap, as the report does."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def run(drain: DrainPass) -> Outcome:
    """Write the result ConfigMap once."""
    status, report = drain.status, drain.report
    name = f"{drain.name}-result"
    if status.result_name == name or report is None or not report.state.forward_only:
        return DONE
    if report.state is not DrainState.DRAINED:  # of a driver that was restarted since
        if drain.application is None or drain.application.will_not_run or drain.replaced or drain.deleted:
            return DONE  # it will not be repeated, or nobody wants it
        message = message_of(Reason.WAITING_FOR_REPORT, run=report.runs[-1] if report.runs else "", state=report.state)
        if drain.now >= later(report.updated_at, PATIENCE_SECONDS):
            status.set(ConditionType.STALLED, "True", Reason.WAITING_FOR_REPORT, message)
        return Waiting(_RECHECK_SECONDS, message)
    data = {
        "report.json": _json(without_offsets(report).as_object()),
        "end-offsets.json": _json(end_offsets(report)),
    }
    try:
        drain.cluster.results.write(drain.body, name, data)
    except ResultNameTakenError:
        message = message_of(Reason.RESULT_NAME_TAKEN, name=name)
        status.set(ConditionType.STALLED, "True", Reason.RESULT_NAME_TAKEN, message)
        return Waiting(_RECHECK_SECONDS, message)
    status.result_name = name
    return DONE
