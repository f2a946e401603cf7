"""The agent in the driver: sees every query start, watches the store, runs one drain at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from pyspark.sql.streaming.query import StreamingQuery, StreamingQueryManager
from spark_drain_store import Channel, DrainReport, DrainState, Snapshot, StoreError
from spark_drain_store.drains import read_notifications, read_reports

from spark_drain_agent import reasons
from spark_drain_agent.batch_marks import GENERATION_PROPERTY, marked
from spark_drain_agent.bypass import as_agent
from spark_drain_agent.decide import Assignment, decide
from spark_drain_agent.drain import Drain
from spark_drain_agent.hold import Gate, Phase
from spark_drain_agent.identity import Identity
from spark_drain_agent.journal import Journal, JournalStep, read_journal
from spark_drain_agent.queries import HeldQuery, QueryRegistry, TrackedQuery
from spark_drain_agent.recovery import end_interrupted_drain
from spark_drain_agent.spark_internals import CapturedWriter, JavaError, SparkInternals, UnsupportedSparkError
from spark_drain_agent.steps.seed import clear_late_state
from spark_drain_agent.trace import LOG

__all__ = ["Agent"]

_WATCH_SECONDS = 30.0
_RETRY_SECONDS = 2.0
_FIRST_LOOK_SECONDS = 10.0


class Agent:
    """The drain agent of one Spark application.

    Parameters
    ----------
    internals
        Access to Spark.
    channel
        The application's drain messages.
    identity
        Who this driver is.
    """

    def __init__(self, internals: SparkInternals, channel: Channel, identity: Identity) -> None:
        self.internals = internals
        self.channel = channel
        self.identity = identity
        self.gate = Gate()
        self.registry = QueryRegistry()
        self.start_lock = threading.Lock()
        self._drain: Drain | None = None
        self._drain_lock = threading.RLock()
        self._malformed: set[str] = set()
        self._stopped = threading.Event()
        self._let_go = False

    def begin(self) -> None:
        """Look for a drain before any query can start, then keep watching.

        A store that does not answer delays a drain, not the pipeline: after a few seconds the application goes on.
        """
        give_up = time.monotonic() + _FIRST_LOOK_SECONDS
        version = ""
        while True:
            try:
                snapshot = self.channel.requests.read()
                version = snapshot.version
                self.consider(snapshot)
                break
            except StoreError as error:
                if time.monotonic() > give_up:
                    LOG.warning("the metadata store does not answer; drains will be seen when it does: %s", error)
                    break
                time.sleep(_RETRY_SECONDS / 4)
        threading.Thread(target=self._watch, args=(version,), name="spark-drain-monitor", daemon=True).start()

    def close(self) -> None:
        """Stop watching: the Spark application of this agent is over."""
        self._stopped.set()
        self.channel.close()

    def _watch(self, version: str) -> None:
        with as_agent():
            while not self._stopped.is_set():
                try:
                    snapshot = self.channel.requests.watch(version, _WATCH_SECONDS)
                    if snapshot is None:
                        snapshot = self.channel.requests.read()  # the slow poll, for a watch that silently died
                    version = snapshot.version
                    self.consider(snapshot)
                except StoreError as error:
                    LOG.debug("the metadata store is away: %s", error)
                    self._stopped.wait(_RETRY_SECONDS)
                except Exception:
                    LOG.exception("the drain monitor met an error and goes on")
                    self._stopped.wait(_RETRY_SECONDS)

    def consider(self, requests: Snapshot, journalled: frozenset[str] = frozenset()) -> None:
        """Act on the present notifications: tell the drain under way, or begin the one that concerns this run."""
        notifications, _ = read_notifications(requests)
        self._report_malformed(requests, set(notifications))
        with self._drain_lock:
            if self._drain is not None:
                self._drain.update(notifications.get(self._drain.uuid))
                return
            if not notifications or self.internals.stopped:  # the application's next session, if there is one, will look again
                return
            reports, _ = read_reports(self.channel.reports.read())
            decision = decide(self.identity.run_id, notifications, reports, journalled)
            if decision is None:
                return
            LOG.info("drain %s: %s", decision.notification.uuid, decision.assignment.value)
            if decision.assignment is Assignment.FORWARD:
                self.gate.turn(Phase.HELD)
            self._drain = Drain(self, decision)
            threading.Thread(target=self._run, args=(self._drain,), name="spark-drain", daemon=True).start()

    def _run(self, drain: Drain) -> None:
        try:
            drain.run()
        except SystemExit:
            LOG.info("drain %s: ended without an answer, its notification is gone", drain.uuid)
        except Exception:
            LOG.exception("drain %s: ended by an unexpected error", drain.uuid)
        finally:
            with self._drain_lock:
                self._drain = None
            self._consider_again()

    def _consider_again(self) -> None:
        """Look for a notification that came while the last drain was under way; the watch has seen it already."""
        try:
            self.consider(self.channel.requests.read())
        except StoreError as error:
            LOG.debug("the metadata store is away: %s", error)

    def _report_malformed(self, requests: Snapshot, readable: set[str]) -> None:
        _, sentences = read_notifications(requests)
        for key, sentence in zip([key for key in requests.entries if key not in readable], sentences, strict=True):
            if key not in self._malformed:
                LOG.warning("%s", sentence)
                report = DrainReport(
                    uuid=key,
                    runs=(),
                    state=DrainState.REJECTED,
                    updated_at=datetime.now(UTC),
                    reason=reasons.MALFORMED_NOTIFICATION,
                    message=sentence[:500],
                )
                self.channel.reports.write({key: report.to_json()})
                self._malformed.add(key)

    # -- called from the hooks, in the user's threads --------------------------------------------------------------------------------

    def start_query(
        self, internals: SparkInternals, capture: Callable[[], CapturedWriter], start_now: Callable[[], StreamingQuery]
    ) -> StreamingQuery:
        """Start a query on behalf of the user, or hand out one that waits."""
        try:
            captured = capture()
            tracked = TrackedQuery(internals, captured, internals.checkpoint_location(captured))
        except (JavaError, UnsupportedSparkError) as error:
            LOG.warning("a query starts unseen by the drain agent: %s", error)
            return start_now()
        while True:
            self.gate.wait_while(Phase.DECIDING)
            if self.gate.phase is Phase.HELD:
                self.registry.add(tracked)
                drain = self._drain
                if drain is not None and drain.forward:
                    drain.offer(tracked)
                return HeldQuery(captured.query_name, self.gate)
            with self.start_lock:
                if self.gate.phase is not Phase.OPEN:
                    continue
                if tracked.location is not None and self._recover(tracked):
                    continue
                with marked(internals.context, {GENERATION_PROPERTY: str(tracked.generation())}):
                    tracked.query = start_now()
                self.registry.add(tracked)
                self.gate.query_started()
                return tracked.query

    def _recover(self, tracked: TrackedQuery) -> bool:
        """Finish or undo what a journal says; True when that made this run part of a drain."""
        files = tracked.checkpoint_files()
        journal = read_journal(files)
        if journal is None:
            return False
        if journal.over:
            clear_late_state(files, journal)
            return False
        if journal.step is not JournalStep.RESTORING and self._adopt(journal):
            return True
        end_interrupted_drain(tracked)
        return False

    def _adopt(self, journal: Journal) -> bool:
        """Take over the drain that a journal belongs to, when its notification is still there."""
        while True:
            try:
                snapshot = self.channel.requests.read()
                if journal.uuid in snapshot.entries:
                    self.consider(snapshot, journalled=frozenset({journal.uuid}))
                return self.gate.phase is Phase.HELD
            except StoreError as error:
                # A drain had begun: whether to go on or back cannot be known without the store, so this one wait has no limit.
                LOG.warning(
                    "drain %s was interrupted; waiting for the metadata store to learn whether it is still wanted: %s", journal.uuid, error
                )
                time.sleep(_RETRY_SECONDS)

    def nothing_will_end(self, streams: StreamingQueryManager) -> bool:
        """Return whether a wait for any query's end would be endless, because a drain has kept the queries from starting."""
        return any(item.query is None for item in self.registry.all()) and not streams.active

    def owns(self, query: StreamingQuery) -> bool:
        """Return whether a drain under way has ended or will end this query."""
        drain = self._drain
        return drain is not None and drain.owns(query.id)

    def hold_exit(self, *, failed: bool = False) -> None:
        """Wait at the end of the user's program while a drain needs the driver.

        A program that failed before it had started what an interrupted drain still needs is let go: its next start may do better.
        """
        drain = self._drain
        self._let_go = self._let_go or (failed and drain is not None and drain.misses_queries)
        if self._let_go:
            return
        with self.gate.user_waits():
            while self.gate.phase is not Phase.OPEN:
                self.gate.wait_while(self.gate.phase, 1.0)
