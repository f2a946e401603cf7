"""Queue, workers, conditions, status, command line: the parts that a drain is not."""

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from spark_drain_operator.cli import parse
from spark_drain_operator.handlers.register import needs_a_pass
from spark_drain_operator.handlers.watched import Watched
from spark_drain_operator.models.conditions import Conditions
from spark_drain_operator.models.reasons import ConditionType, Phase, Reason
from spark_drain_operator.models.spec import DrainSpec, InvalidSpecError
from spark_drain_operator.models.status import DrainStatus, Ending
from spark_drain_operator.queue import DelayedQueue
from spark_drain_operator.reconcile import finish, progress
from spark_drain_operator.reconcile.phases import mark_active
from spark_drain_operator.reconcile.story import story
from spark_drain_operator.workers import DrainKey, Workers, backoff
from spark_drain_store import ConflictError, DrainReport, DrainState, QueryReport
from spark_drain_store.channel import Channel
from spark_drain_store.kube_client import ApiError
from spark_drain_store.messages import DrainNotification, ExecutorException

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_key_is_queued_once() -> None:
    queue: DelayedQueue[str] = DelayedQueue()
    for _ in range(3):
        queue.add("a")
    queue.add("b")
    assert len(queue) == 2
    assert (queue.get(), queue.get()) == ("a", "b")
    assert len(queue) == 0


def test_the_earliest_time_wins() -> None:
    clock = Time()
    queue: DelayedQueue[str] = DelayedQueue(clock)
    queue.add("a", 10)
    queue.add("b", 5)
    queue.add("a", 1)
    queue.add("b", 20)
    clock.now = 1.0
    assert queue.get() == "a"
    clock.now = 5.0
    assert queue.get() == "b"
    assert len(queue) == 0


def test_a_key_that_is_worked_on_comes_back_afterwards() -> None:
    queue: DelayedQueue[str] = DelayedQueue()
    queue.add("a")
    assert queue.get() == "a"
    queue.add("a")
    queue.add("b")
    assert queue.get() == "b"
    queue.done("a")
    assert queue.get() == "a"


def test_closing_wakes_everybody() -> None:
    queue: DelayedQueue[str] = DelayedQueue()
    found: list[str | None] = []
    threads = [threading.Thread(target=lambda: found.append(queue.get())) for _ in range(2)]
    for thread in threads:
        thread.start()
    queue.close()
    for thread in threads:
        thread.join(timeout=5)
    assert found == [None, None]


def test_backoff_grows_to_a_minute() -> None:
    assert [backoff(failures) for failures in (1, 2, 3, 6, 7, 50)] == [1, 2, 4, 32, 60, 60]


@pytest.mark.parametrize(
    "error", [ConflictError("changed"), ApiError(409, "Conflict", "changed"), ApiError(403, "Forbidden", "no"), ValueError("defect")]
)
def test_a_failed_pass_is_tried_again(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    passes: list[float] = []
    finished = threading.Event()

    def reconcile(_namespace: str, _name: str) -> float | None:
        passes.append(time.monotonic())
        if len(passes) == 1:
            raise error
        finished.set()
        return None

    queue: DelayedQueue[DrainKey] = DelayedQueue()
    workers = Workers(queue, reconcile, 2)
    workers.start()
    queue.add(DrainKey("ns", "drain"))
    assert finished.wait(10)
    workers.stop(5)
    assert len(passes) == 2
    assert (passes[1] - passes[0] < 0.9) == (getattr(error, "status", 409) == 409 and not isinstance(error, ValueError))
    assert ("defect in the operator" in caplog.text) == isinstance(error, ValueError)


def test_dead_workers_are_noticed() -> None:
    workers = Workers(DelayedQueue(), lambda *_: None, 1)
    assert workers.stuck() == ["drain-worker-0"]
    workers.start()
    assert workers.stuck() == []
    workers.stop(5)


def test_the_time_of_a_condition_changes_with_its_status_only() -> None:
    conditions = Conditions()
    conditions.set(ConditionType.FLUSHED, "False", "InProgress", "one", time=NOW, generation=1)
    conditions.set(ConditionType.FLUSHED, "False", "FlushStalled", "two", time=NOW + timedelta(seconds=5), generation=1)
    stalled = conditions.get(ConditionType.FLUSHED)
    assert stalled is not None
    assert (stalled.reason, stalled.last_transition_time) == ("FlushStalled", NOW)
    conditions.set(ConditionType.FLUSHED, "True", "Completed", "three", time=NOW + timedelta(seconds=9), generation=1)
    done = conditions.get(ConditionType.FLUSHED)
    assert done is not None
    assert done.last_transition_time == NOW + timedelta(seconds=9)


@pytest.mark.parametrize(
    ("reason", "written"), [("State would be lost!", "Statewouldbelost"), ("", "Unspecified"), ("9lives", "lives"), ("Fine", "Fine")]
)
def test_a_reason_that_the_schema_would_refuse_is_cleaned(reason: str, written: str) -> None:
    conditions = Conditions()
    conditions.set(ConditionType.ACCEPTED, "False", reason, "", time=NOW, generation=1)
    assert [condition.reason for condition in conditions] == [written]


def test_a_status_survives_being_written_and_read() -> None:
    status = DrainStatus(
        generation=4, now=NOW, phase=Phase.FLUSHING, message="m", run_id="r", notification_uuid="u", notification_attempt=2
    )
    status.notification_time = status.start_time = status.scale_down_time = NOW
    status.scale_down_state = "RUNNING"
    status.withdrawal = Ending(Phase.CANCELLED, Reason.CANCEL_REQUESTED, "asked")
    status.withdrawal_time = NOW
    status.outcome = Ending(Phase.DRAINED, "Drained", "done")
    status.set(ConditionType.ACCEPTED, "True", Reason.ACCEPTED, "yes")
    written = status.as_object()
    body = {"metadata": {"generation": 4}, "status": written}
    assert DrainStatus.read(body, NOW).as_object() == written
    assert DrainStatus.read({"metadata": {"generation": 1}}, NOW).as_object() == {"observedGeneration": 1, "phase": "Pending"}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"applicationRef": {}},
        {"applicationRef": None},
        {"applicationRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}, "timeoutSeconds": "soon"},
    ],
)
def test_a_spec_that_slipped_past_the_schema_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpecError, match="apply the CustomResourceDefinition"):
        DrainSpec.parse(spec)


@pytest.mark.parametrize(("ranges", "count"), [("", 0), ("7", 1), ("1-3", 3), ("1-4711,4713-10000", 9999), ("a-b,2", 1), ("5-3", 0)])
def test_executor_ranges(ranges: str, count: int) -> None:
    assert progress.count_ids(ranges) == count


def test_a_huge_report_is_cut_to_what_the_schema_takes() -> None:
    queries = tuple(
        QueryReport(id=f"q{number}", message="m" * 5000, last_batch_id=-1, end_offsets={"long": "x" * 9000, "short": "{}"})
        for number in range(99)
    )
    report = DrainReport(
        uuid="u",
        runs=("r",),
        state=DrainState.DRAINED,
        updated_at=NOW,
        queries=queries + queries[:1],
        executors_expected=10000,
        executors_drained="1-9999",
        executor_exceptions=tuple(ExecutorException(id=str(number), state="Gone") for number in range(80)),
        timings={f"step{number}": 0.5 for number in range(99)},
    )
    status = DrainStatus(generation=1, now=NOW)
    progress.fill(status, report)
    assert len(status.queries) == 32
    assert len(status.executor_exceptions) == 50
    assert len(status.timings) == 32
    assert status.queries[0]["endOffsets"] == [{"source": "short", "offset": "{}"}]
    assert len(status.queries[0]["message"]) == 1024
    assert "lastBatchId" not in status.queries[0]
    assert status.progress["executors"] == "9999/10000"
    assert set(progress.end_offsets(report)) == {f"q{number}" for number in range(99)}


def test_the_end_prunes_old_reports_and_only_its_own_request() -> None:
    channel = Channel.in_memory()
    for uuid in ("mine", "other"):
        channel.requests.write({uuid: DrainNotification(uuid=uuid, created_at=NOW).to_json()})
    channel.reports.write({"mine": "{}", "other": "{}", "ancient": "{}"})
    finish.forget_notification(channel, "mine")
    assert set(channel.requests.read().entries) == {"other"}
    assert set(channel.reports.read().entries) == {"mine", "other"}


@pytest.mark.parametrize(
    ("phase", "succeeded", "stalled"),
    [
        (Phase.DRAINED, "True", "False"),
        (Phase.PLANNED, "True", "False"),
        (Phase.FAILED, "False", "True"),
        (Phase.FORCE_STOPPED, "False", "True"),
    ],
)
def test_every_end_is_final(phase: Phase, succeeded: str, stalled: str) -> None:
    before, after = DrainStatus(generation=1, now=NOW), DrainStatus(generation=1, now=NOW)
    finish.conclude(after, Ending(phase, "Why", "because"))
    found = {condition.type: condition.status for condition in after.conditions}
    assert found[ConditionType.FINISHED] == "True"
    assert found[ConditionType.SUCCEEDED] == succeeded
    assert found[ConditionType.STALLED] == stalled
    assert found[ConditionType.RECONCILING] == "False"
    kind = "Normal" if phase.successful else "Warning"
    assert [tuple(told) for told in story(before, after)] == [(kind, str(phase), "because")]


@pytest.mark.parametrize(("ttl", "left"), [(None, None), (0, 0.0), (60, 50.0), (5, 0.0)])
def test_time_to_live(ttl: int | None, left: float | None) -> None:
    spec = DrainSpec.parse({"applicationRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}, "ttlSecondsAfterFinished": ttl})
    assert finish.seconds_to_live(spec, NOW, NOW + timedelta(seconds=10)) == left


@pytest.mark.parametrize(
    ("event", "body", "expected"),
    [
        (None, {"metadata": {"generation": 1}, "status": {"observedGeneration": 1}}, True),
        ("ADDED", {"metadata": {"generation": 1}}, True),
        ("MODIFIED", {"metadata": {"generation": 1}, "status": {"observedGeneration": 1}}, False),
        ("MODIFIED", {"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}, True),
        ("MODIFIED", {"metadata": {"generation": 1, "deletionTimestamp": "now"}, "status": {"observedGeneration": 1}}, True),
    ],
)
def test_the_operators_own_writes_are_no_news(event: str | None, body: dict[str, Any], expected: bool) -> None:
    assert needs_a_pass(event, body) is expected


def test_watched_drains_by_application() -> None:
    watched = Watched()
    first, second = DrainKey("ns", "first"), DrainKey("ns", "second")
    watched.track(first, "SparkApplication", "app")
    watched.track(second, "SparkApplication", "app")
    watched.track(second, "SparkApplication", "app")
    assert set(watched.of_application("ns", "app")) == {first, second}
    assert set(watched.of_config_map("ns", "sparkapplication-app-drain-reports")) == {first, second}
    assert watched.of_application("other", "app") == ()
    assert watched.of_config_map("ns", "app") == ()
    watched.forget(first)
    watched.forget(first)
    assert watched.of_application("ns", "app") == (second,)


def test_the_command_line_refuses_nonsense(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in ((["--workers", "0"], "--workers must be at least 1"), (["--resync-seconds", "0.1"], "--resync-seconds")):
        with pytest.raises(SystemExit):
            parse(arguments)
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ([], "Flushing"),
        ([(ConditionType.ACCEPTED, "Unknown", Reason.WAITING_FOR_DRIVER)], "WaitingForDriver"),
        (
            [(ConditionType.ACCEPTED, "True", Reason.ACCEPTED), (ConditionType.ACKNOWLEDGED, "Unknown", Reason.WAITING_FOR_AGENT)],
            "WaitingForAgent",
        ),
        ([(ConditionType.ACCEPTED, "True", Reason.ACCEPTED), (ConditionType.ACKNOWLEDGED, "True", Reason.AGENT_ANSWERED)], "Flushing"),
        ([(ConditionType.ACCEPTED, "True", Reason.ACCEPTED), (ConditionType.STALLED, "True", Reason.FLUSH_STALLED)], "FlushStalled"),
    ],
)
def test_an_active_drain_says_what_holds_it_up(conditions: list[tuple[ConditionType, str, Reason]], reason: str) -> None:
    status = DrainStatus(generation=1, now=NOW)
    for condition in conditions:
        status.set(*condition)
    mark_active(status, Phase.FLUSHING, "message", None)
    found = status.conditions.get(ConditionType.SUCCEEDED)
    assert found is not None
    assert (found.status, found.reason) == ("Unknown", reason)
