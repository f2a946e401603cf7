"""Beyond the point of no return: finish every query, however often that takes, and let the executors report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from spark_drain_store import DrainState

from spark_drain_agent import reasons
from spark_drain_agent.bypass import as_agent
from spark_drain_agent.checkpoint import UnknownCheckpointFormatError
from spark_drain_agent.claim import CheckpointClaimedError
from spark_drain_agent.executors import collect_executor_reports
from spark_drain_agent.journal import MalformedJournalError
from spark_drain_agent.ongoing import POLL_SECONDS, DrainEndedError, OngoingDrain
from spark_drain_agent.plan import PlanRejectedError
from spark_drain_agent.queries import TrackedQuery
from spark_drain_agent.query_drain import QueryDrain
from spark_drain_agent.spark_internals import JavaError, in_words
from spark_drain_agent.steps.export import ExportError
from spark_drain_agent.steps.flush import FlushError
from spark_drain_agent.trace import LOG, reached
from spark_drain_agent.versioned import RecoveryNeedsPreviousVersionError

__all__ = ["finish_all", "finish_offered", "report_executors"]

_TRIES_BEFORE_STALLED = 3
_TOGETHER = 4
_RETRY_SECONDS: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (RecoveryNeedsPreviousVersionError, reasons.RECOVERY_NEEDS_PREVIOUS_VERSION),
    (CheckpointClaimedError, reasons.CHECKPOINT_CLAIMED),
    (FlushError, reasons.FLUSH_FAILED),
    (ExportError, reasons.STATE_EXPORT_FAILED),
    (JavaError, reasons.CHECKPOINT_UNWRITABLE),
    (OSError, reasons.CHECKPOINT_UNWRITABLE),
    (MalformedJournalError, reasons.CHECKPOINT_UNWRITABLE),
    (PlanRejectedError, reasons.UNSUPPORTED_QUERY),
    (UnknownCheckpointFormatError, reasons.UNSUPPORTED_QUERY),
)


def finish_all(drain: OngoingDrain) -> None:
    """Finish the queries that were frozen, and after them those that they feed."""
    with drain.timed("flush"):
        left = list(drain.targets)
        while left:
            unfinished = {target.key for target in left}
            ready = [target for target in left if not unfinished.intersection(target.report.fed_by)]
            _finish_together(drain, ready)
            left = [target for target in left if target not in ready]
            if left:
                reached("upstream-finished")


def _finish_together(drain: OngoingDrain, targets: list[QueryDrain]) -> None:
    """Finish independent queries side by side: one waits for the filesystem while another one computes."""
    if len(targets) == 1:
        _finish(drain, targets[0])
        return

    def finish(target: QueryDrain) -> None:
        with as_agent():
            _finish(drain, target)

    with ThreadPoolExecutor(_TOGETHER, thread_name_prefix="spark-drain-flush") as pool:
        for done in [pool.submit(finish, target) for target in targets]:
            done.result()


def finish_offered(drain: OngoingDrain, offered: list[TrackedQuery]) -> None:
    """Finish what an earlier run began: each query that the application tries to start is drained instead.

    Parameters
    ----------
    drain
        The inherited drain.
    offered
        Filled by the hooks, in the user's threads, with the queries that were kept from starting.
    """
    inherited = drain.inherited
    drain.keeps_queries = inherited.queries if inherited else ()
    if inherited is None or inherited.state is not DrainState.DRAINED:
        drain.reporter.change(state=DrainState.FLUSHING, reason="", message="goes on in a new run of the driver")
    missing = drain.missing = {query.checkpoint_location for query in drain.keeps_queries if query.state != DrainState.DRAINED}
    fed_by = {query.checkpoint_location: query.fed_by for query in drain.keeps_queries}
    with drain.timed("flush"):
        # Without a list of queries from the earlier run, the application's main thread says when all have been started.
        while missing or inherited is None:
            tracked = _next(offered, fed_by, missing)
            if tracked is None:
                if drain.host.gate.user_is_waiting or drain.gone.is_set():
                    if inherited is None:
                        break
                    _miss(drain, missing - {item.location for item in offered})
                time.sleep(POLL_SECONDS)
                continue
            target = QueryDrain(tracked, drain.options, drain.uuid)
            target.feed(fed_by.get(tracked.key, ()))
            drain.targets.append(target)
            _finish(drain, target)
            missing.discard(tracked.location or "")
    drain.executors = dict(drain.host.internals.executors())


def _next(offered: list[TrackedQuery], fed_by: Mapping[str, tuple[str, ...]], missing: set[str]) -> TrackedQuery | None:
    """Take the next query off the list that no unfinished one feeds; None where each waits for another."""
    for index, tracked in enumerate(offered):
        if not missing.intersection(fed_by.get(tracked.key, ())):
            return offered.pop(index)
    return None


def _miss(drain: OngoingDrain, missing: set[str]) -> None:
    """Show that a query is not drained and that this run does not start it: calling it drained would hide its open windows."""
    message = (
        f"the drain of {', '.join(sorted(missing))} was interrupted and this run has started no query with that checkpoint: "
        "start the version that was being drained, it finishes the drain"
    )
    if drain.gone.is_set():
        raise DrainEndedError(DrainState.FAILED, reasons.QUERY_NOT_STARTED, message)
    if drain.reporter.report.state is not DrainState.STALLED:
        LOG.warning("drain %s: %s", drain.uuid, message)
        drain.reporter.change(state=DrainState.STALLED, reason=reasons.QUERY_NOT_STARTED, message=message, queries=drain.query_reports())


def _finish(drain: OngoingDrain, target: QueryDrain) -> None:
    """Bring one query to its end; a failing batch is shown and tried again, never skipped."""
    tries = 0
    while True:
        try:
            drain.stalled.pop(target.key, None)
            _show(drain)
            target.finish()
            drain.reporter.change(queries=drain.query_reports())
            return
        except tuple(kind for kind, _ in _REASONS) as error:
            LOG.warning("drain %s: %s: %s", drain.uuid, target.label, in_words(error))
            reason = next(name for kind, name in _REASONS if isinstance(error, kind))
            if tries >= _TRIES_BEFORE_STALLED or isinstance(error, RecoveryNeedsPreviousVersionError):
                message = f"{target.label}: {in_words(error)[:1000]}"
                target.report = replace(target.report, state=DrainState.STALLED, message=message)
                drain.stalled[target.key] = (reason, f"{message}; it is tried again until it works")
                _show(drain)
        if drain.gone.wait(_RETRY_SECONDS[min(tries, len(_RETRY_SECONDS) - 1)]) and tries >= _TRIES_BEFORE_STALLED:
            # Nobody waits for this drain any more: let the driver go, the next start finishes it from the journal.
            report = drain.reporter.report
            raise DrainEndedError(DrainState.FAILED, report.reason, report.message)
        tries += 1


def _show(drain: OngoingDrain) -> None:
    """Report how it goes; one query that stalls is not to be hidden by another one that gets on."""
    stalled = list(drain.stalled.values())
    state, (reason, message) = (DrainState.STALLED, stalled[0]) if stalled else (DrainState.FLUSHING, ("", ""))
    drain.reporter.change(state=state, reason=reason, message=message, queries=drain.query_reports())


def report_executors(drain: OngoingDrain) -> None:
    """Collect the executors' answers into the report."""
    with drain.timed("executors"):
        drain.reporter.change(state=DrainState.REPORTING, reason="", message="", queries=drain.query_reports())
        reached("reporting")
        summary = collect_executor_reports(drain.host.internals, drain.executors)
    drain.reporter.change(
        executors_expected=summary.expected,
        executors_drained=summary.drained,
        executor_exceptions=summary.exceptions,
        timings=drain.timings,
    )
