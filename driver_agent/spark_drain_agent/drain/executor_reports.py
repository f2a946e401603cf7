"""Each executor says from its own process that it is drained."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from spark_drain_store import MOST_EXECUTOR_EXCEPTIONS, ExecutorException, ExecutorState
from spark_drain_store.ranges import expand_ranges, format_ranges

from spark_drain_agent.agent_thread import as_agent
from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.errors import JavaError
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["ExecutorSummary", "collect_executor_reports", "summarize", "warm_up"]

_ROUNDS = 3
_ROUND_SECONDS = 60.0


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


def _report(partition: Iterable[str]) -> Iterable[str]:
    list(partition)
    # Where neither is set a task cannot tell its executor, so it answers with none.
    yield os.environ.get("SPARK_EXECUTOR_ID", "") or _id_in(os.environ.get("SPARK_LOG_URL_STDOUT", ""))


def _id_in(log_url: str) -> str:
    """Return the executor's id in the address of its log: a standalone cluster tells it nowhere else."""
    return "".join(parse_qs(urlsplit(log_url).query).get("executorId", []))


def warm_up(internals: SparkInternals) -> None:
    """Have every executor start the Python worker that its report will need, beside the flush: the first one takes seconds."""

    def round_of_all() -> None:
        with as_agent():
            try:
                registered = [(host, executor) for executor, host in internals.executors()]
                if registered:
                    _one_round(internals, registered)
            except JavaError as error:
                LOG.info("the executors' Python workers will be started when they report: %s", error)

    threading.Thread(target=round_of_all, name="spark-drain-warm-up", daemon=True).start()


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
    answers: list[str] = []

    def run() -> None:
        context.setJobGroup(group, "spark-drain: executors report drained", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]  # back to the default pool
        try:
            answers.extend(internals.rdd_pinned_to(missing).mapPartitions(_report).collect())
        except (*JavaError, OSError) as error:
            LOG.warning("executors did not all report: %s", error)

    thread = threading.Thread(target=run, name="spark-drain-executors", daemon=True)
    thread.start()
    thread.join(_ROUND_SECONDS)
    if thread.is_alive():
        # No executor can be scheduled: the summary says which are silent instead of waiting for ever.
        context.cancelJobGroup(group)
        thread.join(5)
    return {answer for answer in answers if answer}


def summarize(expected: dict[str, str], drained: set[str], registered: set[str]) -> ExecutorSummary:
    """Sort the expected executors into those that reported and the exceptions (pure)."""
    exceptions = [
        ExecutorException(id=executor, state=ExecutorState.SILENT, detail="registered, but its report task did not run there")
        if executor in registered
        else ExecutorException(id=executor, state=ExecutorState.GONE, detail="left the application before it could report")
        for executor in sorted(set(expected) - drained, key=lambda item: (len(item), item))
    ]
    return ExecutorSummary(len(expected), format_ranges(drained), tuple(exceptions[:MOST_EXECUTOR_EXCEPTIONS]))
