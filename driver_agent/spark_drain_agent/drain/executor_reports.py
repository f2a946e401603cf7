"""Each executor says from its own process that it is drained."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass
from typing import Any

from spark_drain_store import MOST_EXECUTOR_EXCEPTIONS, ExecutorException, ExecutorState
from spark_drain_store.ranges import expand_ranges, format_ranges

from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.user_code.batch_marks import marked

__all__ = ["ExecutorSummary", "collect_executor_reports", "summarize"]

_ROUNDS = 3
_ROUND_SECONDS = 60.0
_JOB = {
    "spark.job.description": "spark-drain: executors report drained",
    "spark.job.interruptOnCancel": "true",
    "spark.scheduler.pool": None,  # back to the default one
}


@dataclass(frozen=True)
class ExecutorSummary:
    """What the executors of a run reported.

    Parameters
    ----------
    expected
        How many were registered at the last commit.
    drained
        Ids that reported, as ranges.
    exceptions
        Those that did not, and why; at most 50.
    """

    expected: int
    drained: str
    exceptions: tuple[ExecutorException, ...]

    @property
    def silent(self) -> bool:
        """Whether an executor is registered and has not answered."""
        return any(item.state == ExecutorState.SILENT for item in self.exceptions)

    def as_changes(self) -> dict[str, Any]:
        """Return the fields of the drain report."""
        return {"executors_expected": self.expected, "executors_drained": self.drained, "executor_exceptions": self.exceptions}


def collect_executor_reports(internals: SparkInternals, expected: dict[str, str], before: ExecutorSummary | None = None) -> ExecutorSummary:
    """Run one small task pinned to each executor and collect who answered.

    Parameters
    ----------
    internals
        Access to Spark.
    expected
        Executor id to host, as registered at the last commit. In local mode there are none, and nothing is waited for.
    before
        What was collected before, when some were silent: only the others are asked.
    """
    drained = set(expand_ranges(before.drained)) if before is not None else set()
    for _ in range(_ROUNDS):
        registered = dict(internals.executors())
        missing = [(host, executor) for executor, host in registered.items() if executor not in drained]
        if not missing:
            break
        drained |= _one_round(internals, missing)
    return summarize(expected, drained, set(dict(internals.executors())))


def _one_round(internals: SparkInternals, missing: list[tuple[str, str]]) -> set[str]:
    context, group = internals.context, f"spark-drain-{uuid.uuid4()}"
    answers: set[str] = set()

    def run() -> None:
        try:
            with marked(context, _JOB | {"spark.jobGroup.id": group}):
                answers.update(internals.answers_of(missing))
        except (*JavaError, OSError) as error:
            LOG.warning("executors did not all report: %s", error)

    thread = threading.Thread(target=run, name="spark-drain-executors", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # a system without threads for now has some later, when those that are silent are asked again
        LOG.warning("executors cannot be asked: %s", error)
        return answers
    thread.join(_ROUND_SECONDS)
    if thread.is_alive():
        # No executor can be scheduled: the summary says which are silent instead of waiting for ever.
        context.cancelJobGroup(group)
        thread.join(5)
    return answers


def summarize(expected: dict[str, str], drained: set[str], registered: set[str]) -> ExecutorSummary:
    """Sort the expected executors into those that reported and the exceptions (pure)."""
    exceptions = [
        ExecutorException(id=executor, state=ExecutorState.SILENT, detail="registered, but its report task did not run there")
        if executor in registered
        else ExecutorException(id=executor, state=ExecutorState.GONE, detail="left the application before it could report")
        for executor in sorted(set(expected) - drained, key=lambda item: (len(item), item))
    ]
    return ExecutorSummary(len(expected), format_ranges(drained), tuple(exceptions[:MOST_EXECUTOR_EXCEPTIONS]))
