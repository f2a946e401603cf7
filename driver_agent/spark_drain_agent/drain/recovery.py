"""Before a query starts: end what an interrupted drain has left in its checkpoint and nobody asks for any more."""

from __future__ import annotations

import time
from collections.abc import Callable

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.checkpoint.complete import complete
from spark_drain_agent.checkpoint.fence import can_undo
from spark_drain_agent.checkpoint.journal import read_journal
from spark_drain_agent.checkpoint.lease import CheckpointLeasedError, Lease, acquire_lease
from spark_drain_agent.checkpoint.restore import restore
from spark_drain_agent.checkpoint.undo import undo
from spark_drain_agent.milestones import LOG
from spark_drain_agent.queries.flush_launch import application
from spark_drain_agent.queries.tracked import TrackedQuery

__all__ = ["end_interrupted_drain"]

_RETRY_SECONDS = 5.0


def end_interrupted_drain(tracked: TrackedQuery, forget_flush: Callable[[], None]) -> None:
    """Undo a drain that had not begun to flush, finish any other, and what `recover` or `resume` were interrupted in.

    Parameters
    ----------
    tracked
        The query that is about to start.
    forget_flush
        Called after a flush, which was a query of the application's session.

    Raises
    ------
    RecoveryNeedsPreviousVersionError
        A flush batch is pending that another version of the application had planned.
    """
    files, mine = tracked.checkpoint_files(), _leased(tracked)
    try:
        journal = read_journal(files)  # who had the lease before may have ended it
        if journal is None or journal.over:
            return
        if journal.being_undone:
            restore(files, journal)
        elif can_undo(files, journal):
            LOG.info("%s: drain %s was interrupted before its flush and is no longer requested: undone", tracked.label, journal.drain_id)
            undo(files, journal)
        else:
            LOG.info("%s: drain %s was interrupted after its flush had begun: finished now", tracked.label, journal.drain_id)
            with as_agent():
                complete(files, journal, application(tracked, journal))
                forget_flush()
    finally:
        mine.release()


def _leased(tracked: TrackedQuery) -> Lease:
    while True:
        try:
            return acquire_lease(tracked.checkpoint_files(), tracked.internals)
        except CheckpointLeasedError as error:
            LOG.warning("%s waits: %s", tracked.label, error)
            time.sleep(_RETRY_SECONDS)
