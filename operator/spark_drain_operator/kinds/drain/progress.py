"""The agent's report in the words of the status; no step, nothing is decided."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from spark_drain_store import DrainReport, DrainState, ExecutorException, QueryReport
from spark_drain_store.messages import OperatorReport
from spark_drain_store.ranges import count_ids

from spark_drain_operator.kinds.drain.status import DrainStatus

__all__ = ["end_offsets", "fill", "without_offsets"]

_QUERIES, _OFFSETS, _OPERATORS, _WARNINGS, _EXCEPTIONS, _TIMINGS = 32, 16, 32, 16, 50, 32
_LONG, _PATH = 1024, 2048
_BYTES = 256 * 1024
"""Of all queries together, as the API server stores them: etcd takes 1.5 MB, and the keys of lists are there twice."""
_INT32, _INT64 = 2**31 - 1, 2**63 - 1


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", [])}


def _operator(operator: OperatorReport) -> dict[str, Any]:
    return _known(
        name=operator.name[:253],
        disposition=operator.disposition[:63],
        rowsBefore=_natural(operator.rows_before),
        rowsAfter=_natural(operator.rows_after),
    )


def _query(query: QueryReport) -> dict[str, Any]:
    offsets = [
        {"source": source[:_LONG], "offset": text} for source, text in list(query.end_offsets.items())[:_OFFSETS] if len(text) <= _PATH
    ]
    offsets = _unique(offsets, "source")
    return _known(
        id=query.id[:253],
        name=query.name[:253],
        state=query.state[:63],
        message=query.message[:_LONG],
        checkpointLocation=query.checkpoint_location[:_PATH],
        checkpointPolicy=query.checkpoint_policy[:63],
        sink=query.sink[:_LONG],
        lastBatchId=_natural(query.last_batch_id),
        flushBatchId=_natural(query.flush_batch_id),
        endOffsets=offsets,
        operators=[_operator(operator) for operator in query.operators[:_OPERATORS]],
        warnings=[warning[:_LONG] for warning in query.warnings[:_WARNINGS]],
        archive=query.archive[:_PATH],
    )


def _natural(number: int | None, largest: int = _INT64) -> int | None:
    return None if number is None or number < 0 else min(number, largest)


def _exception(exception: ExecutorException) -> dict[str, Any]:
    return _known(id=exception.id[:63], state=exception.state[:63], detail=exception.detail[:_LONG])


def _sum(values: Iterable[int | None]) -> int | None:
    known = [number for value in values if (number := _natural(value)) is not None]
    return _natural(sum(known)) if known else None


def _unique(items: Iterable[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return list({item[key]: item for item in items if item.get(key)}.values())


def _fitting(queries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first queries, as many as the status has room for."""
    found: list[dict[str, Any]] = []
    left = _BYTES
    for query in queries:
        text = json.dumps(query)
        left -= len(text) + 5 * sum(text.count(letter) for letter in "<>&")  # six bytes each, as Go writes them
        if left < 0:
            break
        found.append(query)
    return found


def fill(status: DrainStatus, report: DrainReport) -> None:
    """Copy what the agent reports into the status, cut to what the schema takes."""
    drained = sum(query.state == DrainState.DRAINED for query in report.queries)
    executors = min(count_ids(report.executors_drained), _INT32)
    operators = [operator for query in report.queries for operator in query.operators]
    total = max(_natural(report.executors_expected, _INT32) or 0, executors)
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
    status.queries = _fitting(_unique((_query(query) for query in report.queries[:_QUERIES]), "id"))
    status.executor_exceptions = _unique((_exception(item) for item in report.executor_exceptions[:_EXCEPTIONS]), "id")
    measured = [(step[:63], seconds) for step, seconds in list(report.timings.items())[:_TIMINGS] if step and math.isfinite(seconds)]
    timings = [{"step": step, "milliseconds": round(min(max(0.0, seconds), _INT32 / 1000) * 1000)} for step, seconds in measured]
    status.timings = _unique(timings, "step")
    if report.runs and report.runs[-1] == status.next_run_id and not report.state.forward_only:
        return  # a next version that answers for the run before it has drained nothing
    if report.runs:
        status.run_id = report.runs[-1][:253]
    status.driver_pod_name = report.driver_pod_name[:253] or status.driver_pod_name
    status.driver_pod_uid = report.driver_pod_uid[:63] or status.driver_pod_uid


def without_offsets(report: DrainReport) -> DrainReport:
    """Return the report without what `end_offsets` has."""
    return replace(report, queries=tuple(replace(query, end_offsets={}) for query in report.queries))


def end_offsets(report: DrainReport) -> dict[str, dict[str, str]]:
    """Return query (name, else id) to source to next offset."""
    return {query.name or query.id: dict(query.end_offsets) for query in report.queries}
