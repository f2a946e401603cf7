"""The agent's report in the words of the status; no step, nothing is decided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spark_drain_store import DrainReport, DrainState, ExecutorException, QueryReport
from spark_drain_store.messages import OperatorReport
from spark_drain_store.ranges import count_ids

from spark_drain_operator.kinds.drain.status import DrainStatus

__all__ = ["end_offsets", "fill"]

_QUERIES, _OFFSETS, _OPERATORS, _WARNINGS, _EXCEPTIONS, _TIMINGS = 32, 16, 32, 16, 50, 32
_LONG, _PATH = 1024, 2048


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", [])}


def _operator(operator: OperatorReport) -> dict[str, Any]:
    return _known(
        name=operator.name[:253],
        disposition=operator.disposition[:63],
        rowsBefore=operator.rows_before,
        rowsAfter=operator.rows_after,
    )


def _query(query: QueryReport) -> dict[str, Any]:
    offsets = [
        {"source": source[:_LONG], "offset": text} for source, text in list(query.end_offsets.items())[:_OFFSETS] if len(text) <= _PATH
    ]
    return _known(
        id=query.id[:253],
        name=query.name[:253],
        state=query.state[:63],
        message=query.message[:_LONG],
        checkpointLocation=query.checkpoint_location[:_PATH],
        checkpointPolicy=query.checkpoint_policy[:63],
        sink=query.sink[:_LONG],
        lastBatchId=_at_least_zero(query.last_batch_id),
        flushBatchId=_at_least_zero(query.flush_batch_id),
        endOffsets=offsets,
        operators=[_operator(operator) for operator in query.operators[:_OPERATORS]],
        warnings=[warning[:_LONG] for warning in query.warnings[:_WARNINGS]],
        archive=query.archive[:_PATH],
    )


def _at_least_zero(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


def _exception(exception: ExecutorException) -> dict[str, Any]:
    return _known(id=exception.id[:63], state=exception.state[:63], detail=exception.detail[:_LONG])


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _unique(items: Iterable[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return list({item[key]: item for item in items if item.get(key)}.values())


def fill(status: DrainStatus, report: DrainReport) -> None:
    """Copy what the agent reports into the status, cut to what the schema takes."""
    drained = sum(query.state == DrainState.DRAINED for query in report.queries)
    executors = count_ids(report.executors_drained)
    operators = [operator for query in report.queries for operator in query.operators]
    total = max(report.executors_expected, executors)
    status.progress = {
        name: value
        for name, value in {
            "queriesTotal": len(report.queries),
            "queriesDrained": drained,
            "queries": f"{drained}/{len(report.queries)}",
            "executorsTotal": total,
            "executorsDrained": executors,
            "executors": f"{executors}/{total}",
            "stateRowsBefore": _sum(operator.rows_before for operator in operators),
            "stateRowsAfter": _sum(operator.rows_after for operator in operators),
        }.items()
        if value is not None
    }
    status.queries = _unique((_query(query) for query in report.queries[:_QUERIES]), "id")
    status.executor_exceptions = _unique((_exception(item) for item in report.executor_exceptions[:_EXCEPTIONS]), "id")
    status.timings = [
        {"step": step[:63], "milliseconds": max(0, round(seconds * 1000))}
        for step, seconds in list(report.timings.items())[:_TIMINGS]
        if step
    ]
    if report.runs:
        status.run_id = report.runs[-1][:253]
    status.driver_pod_name = report.driver_pod_name or status.driver_pod_name
    status.driver_pod_uid = report.driver_pod_uid or status.driver_pod_uid


def end_offsets(report: DrainReport) -> dict[str, dict[str, str]]:
    """Return query (name, else id) to source to next offset."""
    return {query.name or query.id: dict(query.end_offsets) for query in report.queries}
