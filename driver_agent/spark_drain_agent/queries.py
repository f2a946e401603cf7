"""The queries that the application started, and the stand-in for one that a drain keeps from starting."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_store import DrainOptions

from spark_drain_agent.checkpoint import Checkpoint
from spark_drain_agent.feeds import Place
from spark_drain_agent.filesystem import CheckpointFiles
from spark_drain_agent.hold import Gate, Phase
from spark_drain_agent.journal import read_journal
from spark_drain_agent.plan import QueryFacts, fingerprint
from spark_drain_agent.spark_internals import CapturedWriter, LiveQuery, SparkInternals, state_rows
from spark_drain_agent.spark_internals.relations import read_from, written_to
from spark_drain_agent.steps.flush_running import FLUSH_CONF, RunningFlushFacts

__all__ = ["HeldQuery", "QueryRegistry", "TrackedQuery"]


class HeldQuery(StreamingQuery):
    """What ``start()`` returns while a drain is beyond its point of no return: a query that waits and reads nothing.

    Parameters
    ----------
    name
        The query's name, or "".
    gate
        Opens when the drain's notification is gone.
    """

    def __init__(self, name: str, gate: Gate) -> None:
        self._name = name
        self._gate = gate
        self._id = str(uuid.uuid4())

    @property
    def id(self) -> str:
        """An id of its own; the drained query's id is in the drain report."""
        return self._id

    @property
    def runId(self) -> str:  # noqa: N802  # pyspark's name
        """Same as `id`."""
        return self._id

    @property
    def name(self) -> str:
        """The query's name, or ""."""
        return self._name

    @property
    def isActive(self) -> bool:  # noqa: N802  # pyspark's name
        """True until the drain lets the driver go."""
        return self._gate.phase is Phase.HELD

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802  # pyspark's name
        """Wait until the drain lets the driver go."""
        opened = self._gate.wait_while(Phase.HELD, timeout)
        return None if timeout is None else opened

    @property
    def status(self) -> dict[str, Any]:
        """Say what is going on, in the shape of Spark's status."""
        return {"message": "Held by spark-drain", "isDataAvailable": False, "isTriggerActive": False}

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802  # pyspark's name
        """No progress."""
        return []

    @property
    def lastProgress(self) -> None:  # noqa: N802  # pyspark's name
        """No progress."""
        return

    def processAllAvailable(self) -> None:  # noqa: N802  # pyspark's name
        """Wait until the drain lets the driver go."""
        self._gate.wait_while(Phase.HELD)

    def stop(self) -> None:
        """Do nothing: there is nothing to stop."""

    def explain(self, extended: bool = False) -> None:  # noqa: ARG002  # pyspark's signature
        """Say that nothing runs."""
        print("Held by spark-drain: no query is running.")

    def exception(self) -> None:
        """No exception."""
        return


@dataclass
class TrackedQuery:
    """A query whose start the agent saw.

    Parameters
    ----------
    internals
        Access to Spark, through the session that started it.
    captured
        Its writer.
    location
        URI of its checkpoint folder, None for a temporary one.
    query
        The running query, or None when a drain kept it from starting.
    """

    internals: SparkInternals
    captured: CapturedWriter
    location: str | None
    query: StreamingQuery | None = None
    files: CheckpointFiles | None = field(default=None, init=False)
    _temporary: bool = field(default=False, init=False)

    @property
    def label(self) -> str:
        """How messages call the query."""
        if self.captured.query_name:
            return f"query {self.captured.query_name!r}"
        return f"query with checkpoint {self.location}" if self.location else f"unnamed query to {self.captured.source}"

    @property
    def key(self) -> str:
        """What tells the query from every other one of the application."""
        return self.location or self.label

    @property
    def live(self) -> LiveQuery:
        """The running query's execution."""
        assert self.query is not None
        return self.internals.live(self.query)

    def keep_temporary_checkpoint(self) -> None:
        """Let the checkpoint that Spark chose outlive the query, so that the flush finds it."""
        if self.location is None:
            self.live.delete_checkpoint_at_end(False)
            self.location = self.live.checkpoint_root
            self._temporary = True

    def drop_temporary_checkpoint(self) -> None:
        """Undo `keep_temporary_checkpoint`."""
        if self._temporary:
            self.live.delete_checkpoint_at_end(True)
            self.location, self.files, self._temporary = None, None, False

    def checkpoint_files(self) -> CheckpointFiles:
        """Return the files of the checkpoint folder."""
        assert self.location is not None
        if self.files is None:
            self.files = CheckpointFiles(self.internals, self.location)
        return self.files

    def checkpoint(self) -> Checkpoint:
        """Return the logs of the checkpoint folder."""
        return Checkpoint(self.checkpoint_files())

    def generation(self) -> int:
        """Return how often the checkpoint has been drained; 0 for a temporary one."""
        journal = read_journal(self.checkpoint_files()) if self.location is not None else None
        return journal.drains if journal is not None else 0

    def facts(self) -> QueryFacts:
        """Return what planning needs to know."""
        sink = self.captured.source
        if self.query is not None and self.live.sink == "FileStreamSink":
            sink = "FileStreamSink"
        operators = self.internals.stateful_operators(self.captured)
        transforms = any(operator.name.startswith("TransformWithState") for operator in operators)
        return QueryFacts(
            label=self.label,
            sink=sink,
            output_mode=self.captured.output_mode,
            trigger=self.captured.trigger,
            operators=operators,
            checkpoint_location=self.location,
            async_progress=(self.captured.option("asyncProgressTrackingEnabled") or "").lower() == "true",
            state_expires=transforms and self.location is not None and self.checkpoint().state_expires,
        )

    def places(self) -> tuple[list[Place], list[Place]]:
        """Return where the query writes to and where it reads from."""
        return written_to(self.internals, self.captured), read_from(self.internals, self.captured)

    def fingerprint(self) -> str:
        """Return a digest of the plan, equal for the same version of the application."""
        return fingerprint(self.internals.analyzed_text(self.captured), self.internals.spark_version)

    def running_flush_facts(self, options: DrainOptions) -> RunningFlushFacts:
        """Return what decides whether the running query can flush itself."""
        return RunningFlushFacts(
            setting=self.internals.session_conf(FLUSH_CONF, "Auto"),
            to_own_sink=options.incomplete_windows == "Emit",
            exports_state=options.state_export_path is not None,
            interval_ms=self.captured.interval_ms,
            now_ms=int(time.time() * 1000),
            no_data_batches=self.internals.session_conf("spark.sql.streaming.noDataMicroBatches.enabled", "true") == "true",
            processing_time=any(operator.processing_time for operator in self.internals.stateful_operators(self.captured)),
            planned_a_batch=self.live.planned_a_batch,
        )

    def state_rows(self) -> tuple[int, ...]:
        """Return the state rows per operator after the last batch, empty when unknown."""
        return state_rows(self.query) if self.query is not None else ()


class QueryRegistry:
    """All tracked queries, by the order of their start; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tracked: list[TrackedQuery] = []

    def add(self, tracked: TrackedQuery) -> None:
        """Remember a query; an earlier one on the same checkpoint is forgotten."""
        with self._lock:
            self._tracked = [item for item in self._tracked if item.location is None or item.location != tracked.location]
            self._tracked.append(tracked)

    def all(self) -> list[TrackedQuery]:
        """Return every tracked query, also ended ones."""
        with self._lock:
            return list(self._tracked)
