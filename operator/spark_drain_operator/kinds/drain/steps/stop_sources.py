"""Step: no query reads any more, and what was in flight is committed."""

from __future__ import annotations

from spark_drain_store import DrainState

from spark_drain_operator.engine.outcome import DONE, Outcome, Waiting
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Reason

__all__ = ["decide", "run"]


def decide(state: DrainState) -> tuple[str, Reason, str]:
    """Return status, reason and message of the condition SourcesStopped."""
    if state.forward_only:
        return "True", Reason.COMPLETED, "all sources are stopped and every batch that had begun is committed"
    if state is DrainState.STOPPING:
        return "False", Reason.IN_PROGRESS, "the sources are stopped; batches in flight are being committed"
    return "Unknown", Reason.NOT_YET, "the sources have not been stopped yet"


def run(drain: DrainPass) -> Outcome:
    """Follow the report."""
    assert drain.report is not None
    status, reason, message = decide(drain.report.state)
    drain.status.set(ConditionType.SOURCES_STOPPED, status, reason, message)
    if status == "True":
        return DONE
    return Waiting(drain.settings.resync_seconds, drain.agent_message or message, drain.unhurried)
