"""Step: the end offsets outlive the application."""

from __future__ import annotations

import json

from spark_drain_store import DrainState
from spark_drain_store.channel import config_map_names
from spark_drain_store.kube_client import ApiError, ApiUnavailableError

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


def _over(drain: DrainPass) -> bool:
    """Whether the application has stood still for long enough."""
    drained = drain.status.conditions.get(ConditionType.EXECUTORS_DRAINED)
    return drained is not None and drain.now >= later(drained.last_transition_time, PATIENCE_SECONDS)


def _without(drain: DrainPass, name: str, error: str) -> Outcome:
    """Go on, and say so; it is tried again in each pass until the drain has ended."""
    _, reports = config_map_names(drain.spec.application.name, drain.spec.application.kind)
    drain.unkept = message_of(Reason.RESULT_NOT_KEPT, name=name, error=error, reports=reports)
    drain.status.set(ConditionType.STALLED, "True", Reason.RESULT_NOT_KEPT, drain.unkept)
    return DONE


def run(drain: DrainPass) -> Outcome:
    """Write the result ConfigMap once; a drained application does not wait for ever for one that cannot be written."""
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
    except (ApiError, ApiUnavailableError) as error:
        away = isinstance(error, ApiUnavailableError) and not error.answered
        if away or not (drain.deleted or _over(drain)):
            raise
        return _without(drain, name, str(error))
    except ResultNameTakenError:
        if _over(drain):
            return _without(drain, name, "it belongs to somebody else")
        message = message_of(Reason.RESULT_NAME_TAKEN, name=name)
        status.set(ConditionType.STALLED, "True", Reason.RESULT_NAME_TAKEN, message)
        return Waiting(_RECHECK_SECONDS, message)
    status.result_name = name
    return DONE
