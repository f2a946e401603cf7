"""Decisions of a drain that need no Spark: how it is answered, given up, withdrawn, held and let go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from spark_drain_agent.drain.committed_query import CommittedQuery
from spark_drain_agent.drain.decide import Assignment, Decision
from spark_drain_agent.drain.executor_reports import ExecutorSummary
from spark_drain_agent.drain.identity import Identity
from spark_drain_agent.drain.reporter import Reporter
from spark_drain_agent.drain.run import Drain
from spark_drain_agent.drain.selection import Selection
from spark_drain_agent.driver import agent, watch
from spark_drain_agent.driver.agent import Agent
from spark_drain_agent.gate import Phase
from spark_drain_agent.queries.standing import Standing
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.queries.unasked_starts import QueryStart
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.start_waits import StartGivenUpError, given_up_when
from spark_drain_store import DrainNotification, DrainOptions, DrainReport, DrainState, ExecutorException, ExecutorState, QueryReport

from tests.agent.checkpoint.test_steps import JOURNAL
from tests.agent.stores import fickle_channel
from tests.support.waiting import eventually

ME = Identity(run_id="run-2", pod_name="", pod_uid="", spark_version="4.2.0", agent_version="0.1.0")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = DrainNotification(drain_id="u", created_at=NOW)


class NoSpark:
    """Stands where the driver has no executors and no queries; anything else fails the test."""

    stopped = False
    jvm_ended = False
    application_id = "run-2"
    context = SimpleNamespace(_gateway=None)

    def executors(self) -> list[tuple[str, str]]:
        return []

    def active_queries(self) -> dict[str, str]:
        return {}

    def session_conf(self, _name: str, default: str) -> str:
        return default


class World:
    """An agent without Spark, and one drain in it."""

    def __init__(self) -> None:
        self.channel, self.requests, self.reports = fickle_channel()
        self.agent = Agent(cast(SparkInternals, NoSpark()), self.channel, ME)

    def ask(self, notification: DrainNotification) -> None:
        self.channel.requests.write({notification.drain_id: notification.to_json()})

    def report(self, drain_id: str = "u") -> DrainReport | None:
        text = self.channel.reports.read().entries.get(drain_id)
        return DrainReport.from_json(drain_id, text) if text else None

    def answered(self, report: DrainReport) -> None:
        self.channel.reports.write({report.drain_id: report.to_json()})

    def reaches(self, state: DrainState) -> DrainReport:
        return eventually(
            lambda: report if (report := self.report()) is not None and report.state is state else None, seconds=10.0, every=0.01
        )

    @contextmanager
    def run(self, notification: DrainNotification = ASKED, inherited: DrainReport | None = None) -> Iterator[Drain]:
        """Run a drain in a thread; it must have ended at the end of the block."""
        self.ask(notification)
        drain = Drain(self.agent, Decision(notification, inherited, Assignment.FORWARD if inherited else Assignment.FRESH))
        if inherited:
            self.agent.gate.turn(Phase.HELD)
        thread = threading.Thread(target=drain.run, daemon=True)
        thread.start()
        yield drain
        thread.join(10)
        assert not thread.is_alive()
        assert self.agent.gate.phase is Phase.OPEN


def soon(look: Callable[[], Any]) -> Any:
    return eventually(look, seconds=10.0, every=0.01)


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("notification", "state", "reason", "words"),
    [
        (replace(ASKED, options={"colour": "blue"}), DrainState.REJECTED, "UnsupportedOption", "'colour' (value 'blue') is not known"),
        (replace(ASKED, mode="Sideways"), DrainState.REJECTED, "UnsupportedOption", "mode 'Sideways' must be one of"),
        (replace(ASKED, withdrawn=True), DrainState.WITHDRAWN, "Withdrawn", "the queries run on"),
        (replace(ASKED, deadline=NOW), DrainState.FAILED, "DeadlineExceeded", "the deadline 2026-01-01T00:00:00"),
    ],
)
def test_ended_before_anything_was_touched(
    world: World, notification: DrainNotification, state: DrainState, reason: str, words: str
) -> None:
    with world.run(notification):
        pass
    report = world.reaches(state)
    assert report.reason == reason
    assert words in report.message
    assert report.withdrawal == ("Withdrawn" if notification.withdrawn else "")
    assert report.runs == ("run-2",)


def test_a_drain_that_came_when_the_system_had_no_more_threads_is_answered_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_WATCH_SECONDS", 0.1)
    monkeypatch.setattr(watch, "_RETRY_SECONDS", 0.1)
    failures = 2

    class Thread(threading.Thread):
        def start(self) -> None:
            nonlocal failures
            if self.name == "spark-drain" and failures:
                failures -= 1
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(threading, "Thread", Thread)
    world.agent.begin()
    try:
        world.ask(replace(ASKED, withdrawn=True))
        world.reaches(DrainState.WITHDRAWN)
    finally:
        world.agent.close()
    assert not failures


def test_a_drain_that_ends_without_an_answer_is_not_begun_anew_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a defect: the next attempt is likely to end in the same way."""
    begun: list[float] = []

    def run(_: Drain) -> None:
        begun.append(time.monotonic())
        if len(begun) == 1:
            raise RuntimeError("a defect")

    monkeypatch.setattr(agent, "_RETRY_SECONDS", 0.5)
    monkeypatch.setattr(Drain, "run", run)
    world.agent.begin()
    try:
        world.ask(ASKED)
        soon(lambda: len(begun) > 1)
    finally:
        world.agent.close()
    assert begun[1] - begun[0] >= 0.5


def test_removing_the_notification_withdraws_it(world: World) -> None:
    with world.run() as drain:
        world.reaches(DrainState.ACKNOWLEDGED)
        drain.update(None)
    assert world.reaches(DrainState.WITHDRAWN).withdrawal == "Withdrawn"


def test_a_deadline_that_comes_with_the_acknowledgement_counts(world: World) -> None:
    with world.run() as drain:
        world.reaches(DrainState.ACKNOWLEDGED)
        drain.update(replace(ASKED, deadline=datetime.now(UTC) + timedelta(seconds=0.2)))
    assert world.reaches(DrainState.FAILED).reason == "DeadlineExceeded"


def test_the_answer_waits_for_a_store_that_is_away(world: World) -> None:
    with world.run() as drain:
        world.reaches(DrainState.ACKNOWLEDGED)
        world.reports.away = True
        drain.update(replace(ASKED, withdrawn=True))
        soon(lambda: world.reports.refused)
        world.reports.away = False
    assert world.reaches(DrainState.WITHDRAWN)


def test_main_that_waits_before_any_query_was_started_does_not_make_an_application_without_queries(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other threads start them."""
    monkeypatch.setattr("spark_drain_agent.drain.before_commit.select", lambda *_: Selection((), (), ()))
    with world.agent.gate.user_waits(), world.run() as drain:
        world.reaches(DrainState.ACKNOWLEDGED)
        time.sleep(0.5)
        found = world.report()
        assert found is not None
        assert found.state is DrainState.ACKNOWLEDGED
        drain.update(None)
    assert world.reaches(DrainState.WITHDRAWN)


def test_a_thread_of_a_pool_that_waits_does_not_end_a_drain_whose_queries_nobody_knows_any_more(world: World) -> None:
    """The report of the earlier run is lost: other threads may still start what is to be finished."""
    world.ask(ASKED)
    drain = Drain(world.agent, Decision(ASKED, None, Assignment.FORWARD))
    world.agent.gate.turn(Phase.HELD)
    over, threads = threading.Event(), [threading.Thread(target=drain.run, daemon=True)]

    def wait() -> None:
        with world.agent.gate.user_waits():
            over.wait()

    threads.append(threading.Thread(target=wait, daemon=True))
    for thread in threads:
        thread.start()
    world.reaches(DrainState.FLUSHING)
    time.sleep(0.5)
    assert drain.report.state is DrainState.FLUSHING
    with world.agent.gate.user_waits():
        world.reaches(DrainState.DRAINED)
    over.set()
    drain.update(None)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


class Unnamed:
    """A query that was started without a name."""

    location = None
    captured = SimpleNamespace(query_name="")

    def standing(self) -> Standing:
        return Standing.RUNS


class Slow:
    """A query that takes its time to be planned, beside many others."""

    planned = 0

    def __init__(self, _tracked: object, _options: object) -> None:
        Slow.planned += 1
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("change", "state"),
    [({"withdrawn": True}, DrainState.WITHDRAWN), ({"deadline": NOW}, DrainState.FAILED)],
    ids=["withdrawn", "deadline"],
)
def test_the_plan_of_many_queries_is_broken_off(
    world: World, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], state: DrainState
) -> None:
    queries = tuple(cast(TrackedQuery, Unnamed()) for _ in range(90))
    monkeypatch.setattr(Slow, "planned", 0)
    monkeypatch.setattr("spark_drain_agent.drain.before_commit.UncommittedQuery", Slow)
    monkeypatch.setattr("spark_drain_agent.drain.before_commit.select", lambda *_: Selection(queries, (), ()))
    monkeypatch.setattr(world.agent.registry, "all", lambda: list(queries))
    with world.agent.gate.user_waits(), world.run() as drain:
        soon(lambda: Slow.planned)
        drain.update(replace(ASKED, **change))
    assert world.reaches(state)
    assert Slow.planned < len(queries) / 2


@pytest.mark.parametrize(("name", "most"), [("leaseSeconds", "600"), ("startSeconds", "3600")])
def test_a_conf_that_cannot_be_read_is_refused_before_anything_is_touched(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, most: str
) -> None:
    monkeypatch.setattr(NoSpark, "session_conf", lambda _self, conf, default: "15x" if conf.endswith(name) else default)
    with world.run():
        pass
    report = world.reaches(DrainState.REJECTED)
    assert report.reason == "UnsupportedOption"
    assert f"spark.sparkdrain.{name} is '15x', and may be 1 to {most} s" in report.message


INHERITED = DrainReport(
    drain_id="u", runs=("run-1",), state=DrainState.DRAINED, updated_at=NOW, queries=(QueryReport(id="q", state="Drained"),)
)


def test_a_drained_application_that_restarts_is_held_until_it_is_let_go(world: World) -> None:
    with world.run(inherited=INHERITED) as drain:
        soon(lambda: (report := world.report()) and report.state is DrainState.DRAINED and report.runs == ("run-1", "run-2"))
        time.sleep(0.2)
        assert world.agent.gate.phase is Phase.HELD
        drain.update(None)


def test_a_drained_application_is_let_go_while_its_report_cannot_be_written(world: World) -> None:
    world.reports.away = True
    with world.run(inherited=INHERITED) as drain:
        soon(lambda: world.reports.refused > 3)
        assert world.agent.gate.phase is Phase.HELD
        drain.update(None)


@pytest.mark.parametrize("error", [ConnectionRefusedError, AssertionError], ids=["its JVM is gone", "a defect"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_application_is_let_go_whatever_the_end_of_the_drain_fails_with(
    world: World, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr(world.agent.held, "forget_drained", fails)
    with world.run(inherited=INHERITED) as drain:
        world.reaches(DrainState.DRAINED)
        drain.update(None)


def test_a_withdrawal_beyond_the_point_of_no_return_is_too_late(world: World) -> None:
    with world.run(inherited=INHERITED) as drain:
        world.reaches(DrainState.DRAINED)
        drain.update(replace(ASKED, withdrawn=True))
        told = "the withdrawal came after its end, and changes nothing; "
        soon(lambda: (report := world.report()) and report.withdrawal == "TooLate" and report.message.startswith(told))
        drain.update(None)


@pytest.mark.parametrize("names", ["", "w"], ids=["the whole application", "a part"])
@pytest.mark.parametrize("in_flight", [True, False])
@pytest.mark.parametrize("location", ["file:/w", "file:/elsewhere", None], ids=["there", "elsewhere", "on a temporary checkpoint"])
def test_what_started_again_before_the_drain_was_seen_is_not_called_drained(
    world: World, names: str, in_flight: bool, location: str | None
) -> None:
    """The store did not answer when the driver started; whether the query still runs takes nothing back."""
    started = QueryStart(location, "w", "query 'w'")
    drained = QueryReport(id="q", name="w", state="Drained", checkpoint_location="file:/w")
    asked = replace(ASKED, options={"queries": names, "afterDrain": "Keep"} if names else {})
    again = SimpleNamespace(location=location, captured=SimpleNamespace(query_name="w"))
    with ExitStack() as starting:
        if in_flight:
            starting.enter_context(world.agent.gate.starting(again))
        else:
            world.agent.started_unasked.add(started)
        with world.run(asked, inherited=replace(INHERITED, queries=(drained,))) as drain:
            if in_flight:
                time.sleep(0.5)
                assert drain.report.state is DrainState.DRAINED, "as the earlier run has said"
                world.agent.started_unasked.add(started)
                starting.close()
            report = world.reaches(DrainState.FAILED)
    assert report.reason == "QueryRestarted"
    assert "query 'w' started before this run of the driver could learn of the drain" in report.message
    assert drain.given_up is not None, "what it keeps from starting fails, and with it a program that waits for that"


def test_another_query_that_started_unasked_is_none_of_a_drain_of_some(world: World) -> None:
    drained = QueryReport(id="q", name="w", state="Drained", checkpoint_location="file:/w")
    world.agent.started_unasked.add(QueryStart("file:/other", "other", "query 'other'"))
    asked = replace(ASKED, options={"queries": "w", "afterDrain": "Keep"})
    with world.run(asked, inherited=replace(INHERITED, queries=(drained,))) as drain:
        time.sleep(0.5)
        assert drain.report.state is DrainState.DRAINED
        drain.update(None)


def test_a_withdrawal_that_came_between_two_runs_is_answered(world: World) -> None:
    with world.run(replace(ASKED, withdrawn=True), inherited=INHERITED) as drain:
        soon(lambda: (report := world.report()) and report.state is DrainState.DRAINED and report.withdrawal == "TooLate")
        drain.update(None)


def test_a_query_that_the_new_run_does_not_start_is_not_called_drained(world: World) -> None:
    """The next run has lost a query whose flush was pending: the drain stalls and names it, whatever main waits for."""
    missing = QueryReport(id="q", name="orders", state="Flushing", checkpoint_location="file:/checkpoint")
    inherited = replace(INHERITED, state=DrainState.FLUSHING, queries=(missing,))
    with world.agent.gate.user_waits(), world.run(inherited=inherited) as drain:
        report = world.reaches(DrainState.STALLED)
        assert report.reason == "QueryNotStarted"
        assert "file:/checkpoint" in report.message
        assert "starts that query only when another one, which is held, runs or has ended: remove the drain's request" in report.message
        assert report.message.endswith("has to start a query on that checkpoint once more: only that start finishes the drain")
        time.sleep(0.3)
        assert world.reaches(DrainState.STALLED)
        drain.update(None)
    assert world.reaches(DrainState.FAILED).reason == "QueryNotStarted"


def test_a_drain_whose_query_never_comes_ends_with_its_notification(world: World) -> None:
    missing = QueryReport(id="q", state="Flushing", checkpoint_location="file:/checkpoint")
    with world.run(inherited=replace(INHERITED, state=DrainState.FLUSHING, queries=(missing,))) as drain:
        time.sleep(0.3)
        report = world.report()
        assert report is not None
        assert report.state is DrainState.FLUSHING, "main may still be on its way to the query"
        drain.update(None)
    assert world.reaches(DrainState.FAILED).reason == "QueryNotStarted"


def test_the_driver_waits_for_a_defect_to_be_looked_at_also_where_it_cannot_be_reported(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the point of no return it would end as if all was well, and would not be started again."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr(Drain, "_to_the_end", broken)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Reporter, "change", broken)
        with world.run(inherited=replace(INHERITED, state=DrainState.FLUSHING)) as drain:
            time.sleep(0.3)
            assert world.agent.gate.phase is Phase.HELD
            meanwhile.undo()
            assert world.reaches(DrainState.STALLED).reason == "InternalError"
            drain.update(None)


def test_what_nobody_foresaw_fails_the_drain_once_and_not_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def broken(*_: object) -> bool:
        calls.append(1)
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr(world.agent.gate, "in_place", broken)
    monkeypatch.setattr(world.agent.registry, "all", lambda: [object()])
    world.ask(ASKED)
    world.agent.consider(world.channel.requests.read())
    report = world.reaches(DrainState.FAILED)
    assert report.reason == "InternalError"
    assert "nobody foresaw this" in report.message
    time.sleep(0.3)
    assert len(calls) == 1
    assert world.agent.gate.phase is Phase.OPEN


@pytest.mark.parametrize("left", [True, False], ids=["a query is left", "all are finished"])
def test_what_nobody_foresaw_beyond_the_point_of_no_return_is_told_to_the_application(
    world: World, monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    """Let go, an application that ended as if all was well would not be started again, and its drain never finished."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr(f"spark_drain_agent.drain.run.{'InheritedDrain.finish' if left else 'collect_executor_reports'}", broken)
    query = QueryReport(id="q", state="Flushing" if left else "Drained", checkpoint_location="file:/checkpoint")
    with world.run(inherited=replace(INHERITED, queries=(query,))) as drain:
        assert "nobody foresaw this" in world.reaches(DrainState.STALLED).message
        assert drain.given_up is None
        drain.update(None)
    assert (drain.given_up is not None) is left
    if drain.given_up is not None:
        told = drain.given_up.exception()
        assert "nobody foresaw this" in str(told)
        assert isinstance(told.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("stalled", [False, True], ids=["a query is missing", "stalled by what nobody foresaw"])
def test_a_drain_that_is_not_done_ends_with_a_spark_that_stops_by_itself(
    world: World, monkeypatch: pytest.MonkeyPatch, stalled: bool
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr("spark_drain_agent.drain.run._ASK_AGAIN_SECONDS", 0.05)
    if stalled:
        monkeypatch.setattr("spark_drain_agent.drain.run.InheritedDrain.finish", broken)
    missing = QueryReport(id="q", state="Flushing", checkpoint_location="file:/checkpoint")
    with world.run(inherited=replace(INHERITED, state=DrainState.FLUSHING, queries=(missing,))) as drain:
        before = world.reaches(DrainState.STALLED if stalled else DrainState.FLUSHING)
        monkeypatch.setattr(NoSpark, "stopped", True)
    assert drain.given_up is not None
    assert "its SparkContext was stopped" in drain.given_up.message
    after = world.report()
    assert after is not None
    assert after.state is before.state


def test_a_query_has_its_name_although_its_jvm_is_gone() -> None:
    tracked = SimpleNamespace(label="query 'counts'")
    target = CommittedQuery(cast(TrackedQuery, tracked), DrainOptions(), "u", QueryReport(id="q"))
    del tracked.label
    assert target.label == "query 'counts'"


def test_malformed_notifications_are_reported_once_each(world: World) -> None:
    world.reports.away = True
    world.channel.requests.write({"broken": "not json"})
    snapshot = world.channel.requests.read()
    with pytest.raises(Exception, match="away"):
        world.agent.consider(snapshot)
    world.reports.away = False
    world.agent.consider(snapshot)
    report = world.report("broken")
    assert report is not None
    assert (report.state, report.reason) == (DrainState.REJECTED, "MalformedNotification")
    assert "'broken' is not JSON" in report.message
    before = world.channel.reports.read().version
    world.agent.consider(snapshot)
    assert world.channel.reports.read().version == before


def test_what_becomes_unreadable_takes_nothing_back(world: World) -> None:
    """Neither the drain under way, for which the last readable notification counts, nor what was reported of one."""
    inherited = DrainReport(drain_id="u", runs=("run-0", "run-1"), state=DrainState.DRAINED, updated_at=ASKED.created_at)
    world.answered(inherited)
    world.ask(ASKED)
    held = HeldDrain()
    world.agent._drain = cast(Drain, held)
    world.channel.requests.write({"u": "{garbage"})
    world.agent.consider(world.channel.requests.read())
    assert held.told == []
    assert world.report() == inherited
    world.channel.requests.write({"u": None})
    world.agent.consider(world.channel.requests.read())
    assert held.told == [None]


def test_what_keeps_a_drain_from_planning_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_drain_agent.drain.before_commit._SILENT_SECONDS", 0.1)
    world.ask(ASKED)
    world.agent.consider(world.channel.requests.read())
    soon(lambda: (report := world.report()) and report.message == "waits until the application has started a query")
    world.channel.requests.write({"u": None})
    world.agent.consider(world.channel.requests.read())
    soon(lambda: world.agent.drain is None)


class HeldDrain:
    """A drain that notes what it is told of its notification."""

    drain_id = "u"
    ends_application = False

    def __init__(self) -> None:
        self.told: list[DrainNotification | None] = []

    def update(self, notification: DrainNotification | None) -> None:
        self.told.append(notification)


def test_a_journalled_drain_is_adopted_even_if_the_store_comes_and_goes(world: World) -> None:
    """The user's thread that starts a query waits for the store; an error there would end the application."""
    world.ask(replace(ASKED, run_id="run-1"))
    world.reports.away = True
    adopted: list[bool] = []
    thread = threading.Thread(target=lambda: adopted.append(world.agent._adopt(replace(JOURNAL, drain_id="u"))), daemon=True)
    thread.start()
    soon(lambda: world.reports.refused)
    world.reports.away = False
    thread.join(10)
    assert adopted == [True]
    assert world.agent.gate.phase is Phase.HELD
    world.channel.requests.write({"u": None})
    world.agent.consider(world.channel.requests.read())
    soon(lambda: world.agent.gate.phase is Phase.OPEN)


def test_a_start_that_is_given_up_does_not_wait_for_the_store(world: World) -> None:
    world.ask(replace(ASKED, run_id="run-1"))
    world.reports.away = True
    with pytest.raises(StartGivenUpError), given_up_when(lambda: True):
        world.agent._adopt(replace(JOURNAL, drain_id="u"))
    assert world.agent.gate.phase is Phase.OPEN


def test_a_journal_without_a_notification_is_not_adopted(world: World) -> None:
    assert not world.agent._adopt(replace(JOURNAL, drain_id="u"))
    assert world.agent.gate.phase is Phase.OPEN


def test_silent_executors_are_asked_again_while_the_driver_is_held(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator waits for every executor that runs; one that was busy must not let a complete drain time out."""
    silent = ExecutorException(id="2", state=ExecutorState.SILENT, detail="")
    answers = [ExecutorSummary(2, "1", (silent,)), ExecutorSummary(2, "1", (silent,)), ExecutorSummary(2, "1-2", ())]
    asked: list[ExecutorSummary | None] = []

    def collect(_internals: object, _expected: object, before: ExecutorSummary | None = None) -> ExecutorSummary:
        asked.append(before)
        return answers[len(asked) - 1]

    monkeypatch.setattr("spark_drain_agent.drain.run.collect_executor_reports", collect)
    monkeypatch.setattr("spark_drain_agent.drain.run._ASK_AGAIN_SECONDS", 0.05)
    with world.run(inherited=INHERITED) as drain:
        soon(lambda: (report := world.report()) is not None and report.executors_drained == "1-2")
        report = world.report()
        assert report is not None
        assert (report.state, report.executor_exceptions) == (DrainState.DRAINED, ())
        assert asked == [None, *answers[:2]]
        drain.update(None)
