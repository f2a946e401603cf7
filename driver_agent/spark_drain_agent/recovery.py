"""Before a query starts: end what an interrupted drain has left in its checkpoint and nobody asks for any more."""

from __future__ import annotations

import time

from spark_drain_agent.bypass import as_agent
from spark_drain_agent.claim import CheckpointClaimedError, Claim, claim
from spark_drain_agent.journal import JournalStep, read_journal
from spark_drain_agent.queries import TrackedQuery
from spark_drain_agent.steps.complete import complete
from spark_drain_agent.steps.fence import can_undo, undo
from spark_drain_agent.steps.restore import restore
from spark_drain_agent.trace import LOG
from spark_drain_agent.versioned import application

__all__ = ["end_interrupted_drain"]

_RETRY_SECONDS = 5.0


def end_interrupted_drain(tracked: TrackedQuery) -> None:
    """Undo a drain that had not begun to flush, finish any other, put an archive back whose restore was interrupted.

    Raises
    ------
    RecoveryNeedsPreviousVersionError
        A flush batch is pending that another version of the application had planned.
    """
    files, mine = tracked.checkpoint_files(), _claimed(tracked)
    try:
        journal = read_journal(files)  # who had the claim before may have ended it
        if journal is None or journal.over:
            return
        if journal.step is JournalStep.RESTORING:
            restore(files, journal)
        elif can_undo(files, journal):
            LOG.info("%s: drain %s was interrupted before its flush and nobody asks for it any more: undone", tracked.label, journal.uuid)
            undo(files, journal)
        else:
            LOG.info("%s: drain %s was interrupted after its flush had begun: finished now", tracked.label, journal.uuid)
            with as_agent():
                complete(files, journal, application(tracked, journal))
                # The flush was a query of this session: without this, the user's awaitAnyTermination would return for it.
                tracked.internals.session.streams.resetTerminated()
    finally:
        mine.release()


def _claimed(tracked: TrackedQuery) -> Claim:
    while True:
        try:
            return claim(tracked.checkpoint_files(), tracked.internals)
        except CheckpointClaimedError as error:
            LOG.warning("%s waits: %s", tracked.label, error)
            time.sleep(_RETRY_SECONDS)
