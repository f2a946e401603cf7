"""Before a query starts: end what an interrupted drain has left in its checkpoint and nobody asks for any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from spark_drain_store import Channel, DrainState, Snapshot, StoreError
from spark_drain_store.compare_and_set import compare_and_set
from spark_drain_store.drains import read_reports

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.checkpoint.complete import complete
from spark_drain_agent.checkpoint.fence import can_undo, unfence_overtaken
from spark_drain_agent.checkpoint.files import CheckpointLeasedError
from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.checkpoint.lease import Lease, acquire_lease
from spark_drain_agent.checkpoint.restore import restore
from spark_drain_agent.checkpoint.undo import undo
from spark_drain_agent.clock import utc_now
from spark_drain_agent.milestones import LOG
from spark_drain_agent.queries.flush_launch import application
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.start_waits import pause

__all__ = ["end_interrupted_drain", "report_ended"]

_RETRY_SECONDS = 5.0


def end_interrupted_drain(tracked: TrackedQuery, forget_flush: Callable[[], None]) -> DrainState | None:
    """Undo a drain that had not begun to flush, finish any other, and what `recover` or `resume` were interrupted in.

    Parameters
    ----------
    tracked
        The query that is about to start.
    forget_flush
        Called after a flush, which was a query of the application's session.

    Returns
    -------
    DrainState or None
        DRAINED, or WITHDRAWN where it was undone; None where there was nothing to end.

    Raises
    ------
    RecoveryNeedsPreviousVersionError
        A flush batch is pending that another version of the application had planned.
    """
    files = tracked.checkpoint_files()
    with _leased(tracked):
        journal = read_journal(files)  # who had the lease before may have ended it
        if journal is None or journal.over:
            return None
        if journal.being_undone:
            restore(files, journal)
            return DrainState.WITHDRAWN
        unfence_overtaken(files, journal)
        if can_undo(files, journal):
            LOG.info("%s: drain %s was interrupted before its flush and is no longer requested: undone", tracked.label, journal.drain_id)
            undo(files, journal)
            return DrainState.WITHDRAWN
        LOG.info("%s: drain %s was interrupted after its flush had begun: finished now", tracked.label, journal.drain_id)
        with as_agent():
            complete(files, journal, application(tracked, journal))
            forget_flush()
        return DrainState.DRAINED


def report_ended(channel: Channel, drain_id: str, location: str, state: DrainState) -> None:
    """Say in the report of an interrupted drain that nobody asks for any more how one of its queries has come to its end.

    With the last of them the report goes: nothing is left that could keep a later drain from beginning.
    """

    def change(reports: Snapshot) -> dict[str, str | None]:
        report = read_reports(reports)[0].get(drain_id)
        if report is None or report.state.finished or drain_id in channel.requests.read().entries:
            return {}
        queries = tuple(replace(query, state=state) if query.checkpoint_location == location else query for query in report.queries)
        if all(query.state in (DrainState.DRAINED, DrainState.WITHDRAWN) for query in queries):
            return {drain_id: None}
        return {drain_id: replace(report, queries=queries, sequence=report.sequence + 1, updated_at=utc_now()).to_json()}

    try:
        compare_and_set(channel.reports, change)
    except StoreError as error:
        LOG.warning("drain %s has ended at %s, and its report does not say so: %s", drain_id, location, error)


def _leased(tracked: TrackedQuery) -> Lease:
    while True:
        try:
            return acquire_lease(tracked.checkpoint_files(), tracked.internals)
        except CheckpointLeasedError as error:
            LOG.warning("%s waits: %s", tracked.label, error)
            pause(_RETRY_SECONDS)
