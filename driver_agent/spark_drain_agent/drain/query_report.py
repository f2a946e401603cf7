"""What is said of a query: when it is planned, and when its drain is done."""

from __future__ import annotations

import json
from dataclasses import replace

from spark_drain_store import DrainState, OperatorReport, QueryReport

from spark_drain_agent.checkpoint.files import CheckpointFiles
from spark_drain_agent.checkpoint.journal import Journal, read_journal
from spark_drain_agent.checkpoint.logs import Checkpoint, OffsetEntry
from spark_drain_agent.planning.plan import QueryPlan, measured, residue
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.live_query import OperatorState

__all__ = ["describe_drained", "describe_planned", "describe_query", "describe_untouched"]


def describe_query(tracked: TrackedQuery) -> QueryReport:
    """Return the report of a query to which nothing was done yet."""
    return QueryReport(
        id=tracked.query.id if tracked.query is not None else "",
        name=tracked.captured.query_name,
        checkpoint_location=tracked.location or "",
        sink=tracked.captured.source,
    )


def describe_planned(report: QueryReport, plan: QueryPlan) -> QueryReport:
    """Return the report of a query of which is known what will be done to it."""
    return replace(report, checkpoint_policy=plan.checkpoint_policy, operators=plan.operators, warnings=plan.warnings)


def describe_untouched(report: QueryReport, sources: tuple[str, ...], checkpoint: Checkpoint) -> QueryReport:
    """Return the report of a query whose checkpoint a drain left as it was: mode Stop, or there was nothing to drain."""
    batch_id = checkpoint.newest_commit
    end_offsets = _named(sources, checkpoint.offsets(batch_id)) if batch_id is not None else {}
    journal = read_journal(checkpoint.files)
    message = "" if end_offsets else "no batch was ever run: there is nothing to drain"
    if journal is not None and journal.awaits_first_batch(batch_id):
        message = f"no batch was run since drain {journal.drain_id}: there is nothing to drain"
    return replace(report, state=DrainState.DRAINED, last_batch_id=batch_id, end_offsets=end_offsets, message=message)


def describe_drained(
    report: QueryReport, files: CheckpointFiles, journal: Journal, left: tuple[OperatorState, ...], last: OffsetEntry | None = None
) -> QueryReport:
    """Return the report of a drained query.

    Parameters
    ----------
    report
        What was said of it up to now.
    files, journal
        Its checkpoint, and the journal at its end.
    left
        The state that is left, per operator.
    last
        The entry of the newest batch before the drain, where it is known.
    """
    policy = journal.checkpoint_policy
    operators = measured(report.operators, journal.state_rows, [state.rows for state in left])
    warnings = (*report.warnings, *residue(operators, [state.timers_set for state in left], policy))
    archive = files.uri(journal.work) if files.is_folder(journal.work) else ""
    return replace(
        report,
        id=report.id or str(json.loads(journal.metadata).get("id", "")),
        state=DrainState.DRAINED,
        checkpoint_policy=policy,
        last_batch_id=journal.batch_id,
        flush_batch_id=journal.flush_batch_id if journal.flushes else None,
        end_offsets=_named(journal.sources, last or _last_entry(files, journal)),
        watermark_ms=journal.watermark_ms,
        operators=operators,
        warnings=tuple(dict.fromkeys(warnings)),
        archive=archive,
        side_output=journal.side_output,
        state_export=journal.state_export,
        message=_discarded(operators, "" if journal.flushes else archive) if journal.windows == "Discard" else "",
    )


def _last_entry(files: CheckpointFiles, journal: Journal) -> OffsetEntry:
    """Return where the last batch ended: its own entry, or, when its archive is not retained, the seed that was made of it."""
    live, work = Checkpoint(files), Checkpoint(files, journal.work)
    for log in (work, live):
        found = log.find_offsets(journal.batch_id)
        if found is not None:
            return found
    return live.offsets(journal.first_batch_id - 1)


def _discarded(operators: tuple[OperatorReport, ...], archive: str) -> str:
    """Say how much was let go, and where it still is."""
    rows = [operator.rows_before for operator in operators if operator.disposition == "discarded"]
    if not rows:
        return ""
    counted = "an unknown number of" if None in rows else str(sum(row or 0 for row in rows))
    return f"{counted} state rows were discarded" + (f"; {archive} keeps them" if archive else "")


def _named(sources: tuple[str, ...], entry: OffsetEntry) -> dict[str, str]:
    """Return the offsets of an entry by the names that the application has given its sources, or else by what the sources are."""
    if entry.named:
        return entry.by_source
    named: dict[str, str] = {}
    for index, offset in enumerate(entry.offsets):
        name = sources[index] if index < len(sources) else f"source {index}"
        named[name if name not in named else f"{name} ({index})"] = offset
    return named
