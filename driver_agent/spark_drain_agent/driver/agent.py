"""The agent in the driver: sees every query start, watches the store, runs one drain at a time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext

from pyspark.sql.streaming.query import StreamingQuery
from spark_drain_store import Channel, DrainReport, DrainState, Snapshot, StoreError, reasons
from spark_drain_store.drains import read_notifications, read_reports
from spark_drain_store.topics import DRAIN, PLACEMENT

from spark_drain_agent.agent_thread import NO_THREAD_STARTS, as_agent, in_callback, no_thread_starts
from spark_drain_agent.checkpoint.journal import Journal, read_journal
from spark_drain_agent.clock import monotonic, utc_now
from spark_drain_agent.drain.decide import Assignment, decide
from spark_drain_agent.drain.identity import Identity
from spark_drain_agent.drain.planned import wrong_conf
from spark_drain_agent.drain.recovery import end_interrupted_drain, report_ended
from spark_drain_agent.drain.run import Drain
from spark_drain_agent.driver.held_queries import HeldQueries
from spark_drain_agent.driver.recoveries import Recoveries
from spark_drain_agent.driver.signals import ends_for_a_signal, gives_up_start, told_to_end
from spark_drain_agent.driver.watch import Watch
from spark_drain_agent.durations import DURATIONS
from spark_drain_agent.gate import Gate, Phase
from spark_drain_agent.milestones import LOG
from spark_drain_agent.placement.handler import PlacementHandler
from spark_drain_agent.queries.first_start import prepare_first_start
from spark_drain_agent.queries.registry import QueryRegistry
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.queries.unasked_starts import QueryStart, UnaskedStarts
from spark_drain_agent.spark_internals.destination import make_destination
from spark_drain_agent.spark_internals.errors import JavaError, UnsupportedSparkError, answered, in_words, interrupted
from spark_drain_agent.spark_internals.jvm_thread import keep_connections_apart
from spark_drain_agent.spark_internals.late_start import LateStart
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.writer import CapturedWriter
from spark_drain_agent.start_waits import StartGivenUpError, given_up_when, pause
from spark_drain_agent.user_code.batch_marks import marked, marks_of_start

__all__ = ["LET_DECIDE_SECONDS", "Agent"]

_RETRY_SECONDS = 2.0
LET_DECIDE_SECONDS = 5.0
"""How long a thread of the application lets a drain decide at most; nothing depends on it."""
_ANSWER_SECONDS = 0.05
_LOOK_SECONDS = 1.0
_THREADS_SECONDS = 60.0
"""How long what is due may wait for a thread."""
_DRAINED: set[str] = set()
"""Ids of the SparkContexts of this process that had a drain: in local mode the state stores of one outlive it."""


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
        self.registry = QueryRegistry(internals, self.gate.starts_in_flight)
        self.held = HeldQueries(self)
        self._recoveries = Recoveries()
        self._drain: Drain | None = None
        self._drain_lock = threading.RLock()
        self._to_end = False
        self._malformed: set[str] = set()
        self._looked = False
        self.started_unasked = UnaskedStarts()
        self._placements = PlacementHandler(
            internals, channel.about(PLACEMENT), identity.run_id, lambda: self._carried_out, self.registry.running
        )
        self._watch = Watch(channel, {DRAIN: self.consider, PLACEMENT: self._placements.consider})
        self._let_go = False
        self._drain_ended = monotonic()
        self._process = os.getpid()
        self._answer_awaited: tuple[Drain | None, float] | None = None

    def begin(self) -> None:
        """Look for a drain before any query can start, then keep watching."""
        for conf in DURATIONS:
            conf.read_or_default(self.internals.session_conf)  # warns in time
        if wrong := wrong_conf(self.internals):
            LOG.warning("drains will be rejected: %s", wrong)
        keep_connections_apart(self.internals.context)
        self._watch.begin()

    @property
    def watches(self) -> bool:
        """Whether what is asked of the application is seen."""
        return self._watch.runs

    def close(self) -> None:
        """Stop watching, and hold nobody any more: the SparkContext of this agent was stopped."""
        self._watch.close()
        with self._drain_lock:
            if self._drain is not None:
                self._drain.overtake()

    def consider(self, requests: Snapshot, journalled: frozenset[str] = frozenset()) -> None:
        """Act on the present notifications: tell the drain under way, or begin the one that concerns this run."""
        self._consider(requests, journalled)
        self._looked = True

    def _consider(self, requests: Snapshot, journalled: frozenset[str]) -> None:
        notifications, _ = read_notifications(requests)
        self._report_malformed(requests, set(notifications))
        with self._drain_lock:
            if self._drain is not None:
                drain_id = self._drain.drain_id
                if drain_id in notifications or drain_id not in requests.entries:  # else unreadable: the last readable one counts
                    self._drain.update(notifications.get(drain_id))
                    self._to_end = self._to_end or (drain_id not in requests.entries and self._drain.ends_application)
                return
            if not notifications or self.internals.stopped:  # the application's next session, if there is one, will look again
                return
            reports, _ = read_reports(self.channel.reports.read())
            decision = decide(self.identity.run_id, notifications, reports, journalled)
            if decision is None:
                return
            LOG.info("drain %s: %s", decision.notification.drain_id, decision.assignment.value)
            decided = Drain(self, decision, for_next_version=self._to_end)
            self.gate.begin()
            _DRAINED.add(self.internals.application_id)
            self._drain = decided
            if decision.assignment is Assignment.FORWARD:
                self.gate.turn(Phase.HELD, decided.concerns)
            try:
                threading.Thread(target=self._run, args=(decided,), name="spark-drain", daemon=True).start()
            except RuntimeError:
                self._drain = None
                self.gate.turn(Phase.OPEN)
                if decision.assignment is Assignment.FORWARD or not no_thread_starts():
                    raise  # the system has no more threads now; a later look begins anew
                decided.refuse(reasons.UNSUPPORTED_SESSION, NO_THREAD_STARTS)

    def _run(self, drain: Drain) -> None:
        try:
            drain.run()
        except Exception:
            LOG.exception("drain %s: ended by an unexpected error", drain.drain_id)
            time.sleep(_RETRY_SECONDS)
        finally:
            with self._drain_lock:
                self._drain, self._drain_ended = None, monotonic()
            self.held.stand_ins.begin_what_is_due(patience=_THREADS_SECONDS)
            self.let_go()
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
            if key in self._malformed:
                continue
            LOG.warning("%s", sentence)
            if key not in self.channel.reports.read().entries:  # else it was readable once: what was reported of it stays
                report = DrainReport(
                    drain_id=key,
                    runs=(),
                    state=DrainState.REJECTED,
                    updated_at=utc_now(),
                    reason=reasons.MALFORMED_NOTIFICATION,
                    message=sentence[:500],
                )
                self.channel.reports.write({key: report.to_json()})
            self._malformed.add(key)

    # -- called from the hooks, in the user's threads --------------------------------------------------------------------------------

    def start_query(
        self,
        internals: SparkInternals,
        capture: Callable[[], CapturedWriter],
        start_now: Callable[[], StreamingQuery],
        start_later: Callable[[], StreamingQuery] | None = None,
    ) -> StreamingQuery:
        """Start a query on behalf of the user, or hand out one that waits and, if it is bounded, is started later."""
        if os.getpid() == self._process:
            self._watch.go_on()
        else:
            LOG.warning(
                "a process that was forked from the one that has made the Spark session starts a query: nobody answers drains of it once "
                "that one has ended; fork first (as to become a daemon), then make the session"
            )
        try:
            captured = capture()
            tracked = TrackedQuery(internals, captured, internals.checkpoint_location(captured))
        except (*JavaError, UnsupportedSparkError) as error:
            if interrupted(error):
                raise
            LOG.warning("a query starts that the drain agent cannot track: %s", " ".join(in_words(error).split()))
            return start_now()
        if self.gate.phase is Phase.DECIDING and not in_callback() and not self.registry.was_stopped(tracked.location):
            # Only so that a loop that starts query after query lets a drain decide in between; nothing depends on it.
            self.gate.wait_for_decision(tracked, LET_DECIDE_SECONDS)
        unasked, begun = not self._looked, monotonic()
        with self.gate.starting(tracked, again=self.registry.knows(tracked)) as free:
            try:
                with given_up_when(lambda: gives_up_start(begun)):
                    waits = not free or self._becomes_part_of_a_drain(tracked)
            except StartGivenUpError:
                return self.held.stand_ins.give_up(tracked)
            if not waits:
                way = self.held.stand_ins.giving_way(tracked) if start_later is None else nullcontext()
                with way, marked(internals.context, marks_of_start(tracked.generation())):
                    query = self._start(tracked, start_now, QueryStart.of(tracked) if unasked else None)
                self.held.stand_ins.forget_after_start(tracked)
                return query
        tracked.keep_session()
        drain = self._drain
        if drain is not None and drain.forward:
            drain.offer(tracked)
        if start_later is None:
            make_destination(internals, captured)
        return self.held.stand_ins.put_off(tracked, (start_later or self._later(tracked)) if tracked.bounded else None)

    def _later(self, tracked: TrackedQuery) -> Callable[[], StreamingQuery]:
        """Return what starts a query when a drain has let the driver go, as it would have been started now."""
        late = LateStart(tracked.internals, tracked.captured, tracked.location)

        def start() -> StreamingQuery:
            others = dict.fromkeys(name for name, _ in late.internals.local_properties())
            with marked(late.internals.context, {**others, **dict(late.captured.local_properties)}):
                return self.start_query(late.internals, lambda: late.captured, late.launch, start)

        return start

    def _start(self, tracked: TrackedQuery, start_now: Callable[[], StreamingQuery], unasked: QueryStart | None) -> StreamingQuery:
        """Start a query and remember it; it may run although its start has raised an exception."""
        if unasked is not None:
            self.started_unasked.add(unasked)
        try:
            tracked.query = start_now()
        except BaseException as error:
            over = answered(error) or isinstance(error, StartGivenUpError)
            self.registry.expect(tracked, still_starting=not over)
            tracked.refused = over and tracked.query is None
            if tracked.refused and unasked is not None:
                self.started_unasked.take_back(unasked)
            raise
        self.registry.add(tracked)
        self._to_end = False
        self.let_go()
        return tracked.query

    def let_go(self) -> None:
        """Let Spark forget the queries that were stopped or have failed, unless a drain works on any, which may be about them."""
        if self._drain is not None and not self._drain.rests:
            return
        try:
            self.registry.let_go(self.held.given_up)
        except Exception as error:
            if interrupted(error):
                raise
            if isinstance(error, JavaError):  # Spark was stopped
                LOG.debug("queries that were stopped are kept: %s", error)
            else:  # a defect of the agent is not one of the application
                LOG.exception("queries that were stopped are kept")

    def _becomes_part_of_a_drain(self, tracked: TrackedQuery) -> bool:
        """Finish or undo what a journal says; True when a drain is still asked for and keeps the query from starting."""
        if tracked.location is None or read_journal(tracked.checkpoint_files()) is None:
            return False
        with self._recoveries(tracked.location):
            try:
                return self._recover(tracked) and self.gate.holds(tracked)
            except Exception:
                self.registry.refuse(tracked)
                raise

    def _recover(self, tracked: TrackedQuery) -> bool:
        files = tracked.checkpoint_files()
        journal = read_journal(files)  # another start may have ended what there was
        if journal is None:
            return False
        if journal.over:
            drain_ended = self._drain_ended if journal.application in _DRAINED else None
            prepare_first_start(tracked, journal, lambda: self.registry.runs_on(tracked.location), drain_ended)
            return False
        if not journal.being_undone and self._adopt(journal):
            return True
        state = end_interrupted_drain(tracked, lambda: self.held.forget_flush(tracked.internals.session.streams))
        if state is not None:
            report_ended(self.channel, journal.drain_id, tracked.location or "", state)
        ended = read_journal(files)
        if ended is not None:
            prepare_first_start(tracked, ended, lambda: self.registry.runs_on(tracked.location), monotonic())
        return False

    def _adopt(self, journal: Journal) -> bool:
        """Take over the drain that a journal belongs to, when its notification is still there."""
        while True:
            try:
                snapshot = self.channel.requests.read()
                if journal.drain_id in snapshot.entries:
                    self.consider(snapshot, journalled=frozenset({journal.drain_id}))
                return self.gate.phase is Phase.HELD
            except StoreError as error:
                # A drain had begun: whether to go on or back cannot be known without the store, so this one wait has no limit.
                LOG.warning(
                    "drain %s was interrupted; waiting for the metadata store to learn whether it is still wanted: %s",
                    journal.drain_id,
                    error,
                )
                pause(_RETRY_SECONDS)

    def hold_exit(self, *, failed: bool = False, for_good: bool = True) -> None:
        """Wait at the end of the user's program while a drain needs the driver.

        Parameters
        ----------
        failed
            Whether it ends by an exception.
        for_good
            Whether Spark is stopped next; threads of the application may go on after its main has ended.

        A program that failed before it had started what an interrupted drain still needs is let go: its next start may do better. So is
        one that was told to end by a signal, and one that lost its JVM.
        """
        if os.getpid() != self._process:
            return  # a forked child: the drain goes on in its parent
        drain = self._drain
        self._let_go = self._let_go or (failed and drain is not None and drain.misses_queries) or ends_for_a_signal()
        if not self._let_go and not self.told_to_end:
            self._let_answer()
        if for_good and self.gate.leave():
            return  # a drain that can still be given up needs no driver
        if failed and self._outlives_main:
            # Beyond the point of no return the driver must outlive main, or its pod would be restarted before it is scaled down.
            LOG.exception("the application has failed; the driver stays until the drain is over")
        while self._outlives_main:
            self._wait_while(self.gate.phase, _LOOK_SECONDS)

    @property
    def _outlives_main(self) -> bool:
        return self.keeps_driver and not (self._let_go or self.told_to_end or self.internals.jvm_ended)

    def _let_answer(self) -> None:
        """Wait a short time while a drain is deciding, and then while it says that it was given up: main may end for the same reason.

        Python's end follows that of main, and does not wait anew.
        """
        if self._answer_awaited is None or self._answer_awaited[0] is not self._drain:
            self._answer_awaited = self._drain, monotonic() + LET_DECIDE_SECONDS
        _, give_up = self._answer_awaited
        self.let_decide(max(0.0, give_up - monotonic()))
        while (drain := self._drain) is not None and drain.gives_up and monotonic() < give_up:
            time.sleep(_ANSWER_SECONDS)

    def let_decide(self, seconds: float) -> None:
        """Wait while a drain is deciding, at most so long; not in a function that the drain may wait for."""
        if not in_callback():
            self._wait_while(Phase.DECIDING, seconds)

    def wait_while_held(self, seconds: float) -> None:
        """Wait while a drain is past its point of no return, at most so long."""
        self._wait_while(Phase.HELD, seconds)

    def _wait_while(self, phase: Phase, seconds: float) -> None:
        if phase is not Phase.OPEN:
            self.gate.wait_while(phase, seconds)

    @property
    def told_to_end(self) -> bool:
        """Whether a signal has told the program to end."""
        return told_to_end(self.gate.begun)

    @property
    def drain(self) -> Drain | None:
        """The drain under way."""
        return self._drain

    @property
    def _carried_out(self) -> str:
        """The id of the drain under way, or ""; one that is only planned may wait for days, and changes nothing for executors."""
        drain = self._drain
        return "" if drain is None or drain.request.only_planned else drain.drain_id

    @property
    def keeps_driver(self) -> bool:
        """Whether a drain needs the driver: one of the whole application until it lets go, another one until it is finished."""
        drain = self._drain
        return self.gate.phase is Phase.HELD and (drain is None or drain.keeps_driver)

    def stop_later(self, stop: Callable[[], None]) -> None:
        """Stop Spark when a drain needs it no more, for a function that must not wait itself."""
        LOG.warning("Spark is stopped from a callback: this is done when the drain releases the driver")

        def wait_and_stop() -> None:
            with as_agent():
                self.hold_exit()
                stop()

        threading.Thread(target=wait_and_stop, name="spark-drain-stop", daemon=True).start()
