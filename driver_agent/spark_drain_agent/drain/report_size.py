"""Drain reports that do not fit into the metadata store: what is left out, step by step, so that any drain can be answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_drain_store import DrainReport, DrainState, QueryReport

__all__ = ["MOST_STEPS", "shrunk"]

_SHORT = 300
_LARGE_OFFSETS = 2000


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


def _without_detail(query: QueryReport) -> QueryReport:
    return replace(query, operators=(), warnings=(), message=_short(query.message))


def _without_large_offsets(query: QueryReport) -> QueryReport:
    size = sum(len(source) + len(offset) for source, offset in query.end_offsets.items())
    return _without_offsets(query) if size > _LARGE_OFFSETS else query


def _without_offsets(query: QueryReport) -> QueryReport:
    return replace(query, end_offsets={}, message=_with_place(query)) if query.end_offsets else query


def _with_place(query: QueryReport) -> str:
    """Say where the end offsets are when they are not in the report."""
    log = f"{query.archive or query.checkpoint_location}/offsets/{query.last_batch_id}"
    place = f"endOffsets left out: the last line or lines of {log}"
    return f"{query.message}; {place}" if query.message else place


def _bare(query: QueryReport) -> QueryReport:
    """Keep what the next run needs to go on with the drain, and what ended where."""
    return QueryReport(
        id=query.id,
        name=query.name,
        state=query.state,
        checkpoint_location=query.checkpoint_location,
        checkpoint_policy=query.checkpoint_policy,
        depends_on=query.depends_on,
        last_batch_id=query.last_batch_id,
    )


def _only_counted(report: DrainReport) -> tuple[QueryReport, ...]:
    """Keep one line for all; while one of them is not drained neither is that line, so that nobody takes the drain for ended."""
    unfinished = [query for query in report.queries if query.state != DrainState.DRAINED]
    state = unfinished[0].state if unfinished else DrainState.DRAINED.value
    message = (
        f"{len(report.queries)} queries left out, {len(unfinished)} of them not drained; their checkpoints and the driver's log name them"
    )
    return (QueryReport(id="", state=state, message=message),)


_Step = tuple[str, Callable[[DrainReport], DrainReport]]


def _each(change: Callable[[QueryReport], QueryReport]) -> Callable[[DrainReport], DrainReport]:
    return lambda report: replace(report, queries=tuple(change(query) for query in report.queries))


_STEPS: tuple[_Step, ...] = (
    ("operators and warnings of queries", _each(_without_detail)),
    (f"endOffsets longer than {_LARGE_OFFSETS} characters (see the queries' messages)", _each(_without_large_offsets)),
    ("all endOffsets (see the queries' messages)", _each(_without_offsets)),
    (
        "all of a query but its state, checkpoint and last batch, whose entry in the checkpoint's offset log has its endOffsets",
        _each(_bare),
    ),
    ("the queries", lambda report: replace(report, queries=_only_counted(report), executor_exceptions=())),
)

MOST_STEPS = len(_STEPS)


def shrunk(report: DrainReport, steps: int) -> DrainReport:
    """Return the report after so many steps, the message saying what was left out; 0 is the report as it is.

    Parameters
    ----------
    report
        The whole report.
    steps
        At most `MOST_STEPS`; each leaves out more than the one before.
    """
    if not steps:
        return report
    for _, step in _STEPS[:steps]:
        report = step(report)
    left_out = f"left out, since the report is larger than the metadata store takes: {', '.join(what for what, _ in _STEPS[:steps])}"
    return replace(report, message=f"{_short(report.message)}; {left_out}" if report.message else left_out)
