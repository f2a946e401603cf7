"""The decisions of a drain, each as a table; no input, no output, no clock."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from spark_drain_operator.applications.kubeflow import activity_of
from spark_drain_operator.applications.protocol import Activity, Application
from spark_drain_operator.models.reasons import ConditionType, Phase, Reason
from spark_drain_operator.models.spec import ApplicationRef, DrainSpec
from spark_drain_operator.models.status import DrainStatus, Ending
from spark_drain_operator.reconcile import approve, executors, find_run, flush, limits, request, scale_down, stop_sources, verdict, withdraw
from spark_drain_operator.reconcile.outcome import Ended, Waiting
from spark_drain_operator.storage.pods import DriverPod, PodName
from spark_drain_store import DrainNotification, DrainReport, DrainState, ExecutorException

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REF = ApplicationRef("sparkoperator.k8s.io/v1beta2", "SparkApplication", "app")


def spec(**fields: Any) -> DrainSpec:
    return DrainSpec(application=REF, **{"options": {}, **fields})


def status(**fields: Any) -> DrainStatus:
    return DrainStatus(generation=1, now=NOW, **fields)


def driver(run_id: str = "one", phase: str = "Running", *, terminating: bool = False, uid: str = "") -> DriverPod:
    return DriverPod("app-driver", uid or f"uid-{run_id}", run_id, phase, terminating, NOW if phase == "Running" else None)


def application(
    state: str = "RUNNING", *drivers: DriverPod, suspend: bool = False, uid: str = "app-uid", activity: Activity | None = None
) -> Application:
    return Application("app", uid, state, activity or activity_of(state, suspend_requested=suspend), suspend, drivers)


def report(state: DrainState, **fields: Any) -> DrainReport:
    return DrainReport(**{"uuid": "mine", "runs": ("one",), "state": state, "updated_at": NOW, **fields})


def notification(uuid: str, **fields: Any) -> DrainNotification:
    return DrainNotification(uuid=uuid, created_at=NOW, **fields)


@pytest.mark.parametrize(
    ("state", "suspend", "activity"),
    [
        ("", False, Activity.STARTING),
        ("", True, Activity.SUSPENDED),
        ("SUBMITTED", False, Activity.STARTING),
        ("SUBMISSION_FAILED", False, Activity.STARTING),
        ("RUNNING", False, Activity.RUNNING),
        ("RUNNING", True, Activity.RUNNING),
        ("UNKNOWN", False, Activity.RUNNING),
        ("SUSPENDING", True, Activity.STOPPING),
        ("SUSPENDED", True, Activity.SUSPENDED),
        ("SUSPENDED", False, Activity.STARTING),
        ("RESUMING", False, Activity.STARTING),
        ("PENDING_RERUN", False, Activity.STARTING),
        ("INVALIDATING", False, Activity.STARTING),
        ("FAILING", False, Activity.STOPPING),
        ("SUCCEEDING", False, Activity.STOPPING),
        ("COMPLETED", False, Activity.ENDED),
        ("FAILED", False, Activity.ENDED),
        ("A_LATER_VERSION", False, Activity.STARTING),
    ],
)
def test_what_a_state_of_kubeflow_means(state: str, suspend: bool, activity: Activity) -> None:
    assert activity_of(state, suspend_requested=suspend) is activity


GONE = application("COMPLETED", driver(phase="Succeeded"))


@pytest.mark.parametrize(
    ("wish", "seen", "expected"),
    [
        ({}, application("RUNNING", driver()), "one"),
        ({}, application("SUBMITTED", driver(phase="Pending")), "one"),
        ({"run_id": "one"}, application("RUNNING", driver()), "one"),
        ({"run_id": "zero"}, application("RUNNING", driver()), (Phase.REJECTED, Reason.STALE_RUN_ID)),
        ({}, application("RUNNING", driver(terminating=True)), None),
        ({}, None, None),
        ({}, GONE, None),
        ({"if_not_running": "Succeed"}, None, (Phase.NOTHING_TO_DRAIN, Phase.NOTHING_TO_DRAIN)),
        ({"if_not_running": "Succeed"}, GONE, (Phase.NOTHING_TO_DRAIN, Phase.NOTHING_TO_DRAIN)),
        ({"if_not_running": "Succeed"}, application("SUSPENDED", suspend=True), (Phase.NOTHING_TO_DRAIN, Phase.NOTHING_TO_DRAIN)),
        ({"if_not_running": "Succeed"}, application("SUSPENDED", driver(terminating=True), suspend=True), None),
        ({"if_not_running": "Succeed"}, application("SUBMITTED"), None),
        ({"if_not_running": "Reject"}, None, (Phase.REJECTED, Reason.APPLICATION_NOT_FOUND)),
        ({"if_not_running": "Reject"}, GONE, (Phase.REJECTED, Reason.APPLICATION_NOT_RUNNING)),
        ({"if_not_running": "Reject"}, application("PENDING_RERUN"), None),
    ],
)
def test_find_run(wish: dict[str, Any], seen: Application | None, expected: Any) -> None:
    decision = find_run.decide(spec(**wish), seen, "ns")
    if isinstance(expected, tuple):
        assert isinstance(decision, Ended)
        assert (decision.ending.phase, decision.ending.reason) == expected
    elif expected is None:
        assert isinstance(decision, Waiting)
    else:
        assert isinstance(decision, DriverPod)
        assert decision.run_id == expected


MINE = notification("mine", run_id="one")
OTHER = notification("other", run_id="one")
PLAN = notification("plan", run_id="one", options={"execution": "PlanOnly"})


@pytest.mark.parametrize(
    ("notifications", "reports", "fields", "expected"),
    [
        ([], [], {}, ("WRITE", "")),
        ([], [], {"driver": None}, ("WAIT_FOR_DRIVER", "")),
        ([], [], {"written_before": True}, ("REMOVED", "")),
        ([OTHER], [], {}, ("BLOCKED", "other")),
        ([OTHER], [report(DrainState.FLUSHING, uuid="other")], {}, ("BLOCKED", "other")),
        ([OTHER], [report(DrainState.DRAINED, uuid="other")], {}, ("BLOCKED", "other")),
        ([OTHER], [report(DrainState.WITHDRAWN, uuid="other")], {}, ("WRITE", "")),
        ([OTHER], [report(DrainState.FAILED, uuid="other")], {}, ("WRITE", "")),
        ([PLAN], [report(DrainState.ACKNOWLEDGED, uuid="plan")], {}, ("WAIT_FOR_PLAN", "plan")),
        ([MINE, OTHER], [], {}, ("KEEP", "")),
        ([MINE], [], {"written_before": True}, ("KEEP", "")),
        ([MINE], [], {"driver": None}, ("WAIT_FOR_DRIVER", "")),
        ([MINE], [report(DrainState.FLUSHING)], {"driver": None}, ("KEEP", "")),
        ([MINE], [], {"driver": driver("two")}, ("REBIND", "")),
        ([MINE], [], {"driver": driver("two"), "other_driver_alive": True}, ("WAIT_FOR_DRIVER", "")),
        ([MINE], [], {"driver": driver("two"), "pinned_run": "one"}, ("STALE", "")),
        ([MINE], [report(DrainState.ACKNOWLEDGED)], {"driver": driver("two")}, ("KEEP", "")),
        ([notification("mine", run_id="one", withdrawn=True)], [], {"driver": driver("two")}, ("KEEP", "")),
    ],
)
def test_request(
    notifications: list[DrainNotification], reports: list[DrainReport], fields: dict[str, Any], expected: tuple[str, str]
) -> None:
    given: dict[str, Any] = {"written_before": False, "pinned_run": None, "driver": driver("one"), "other_driver_alive": False, **fields}
    decision = request.decide(
        uuid="mine", notifications={each.uuid: each for each in notifications}, reports={each.uuid: each for each in reports}, **given
    )
    assert (decision.action.name, decision.other) == expected


@pytest.mark.parametrize(
    ("wish", "given", "expected"),
    [
        ({}, report(DrainState.ACKNOWLEDGED), approve.Go.GO),
        ({"execution": "AfterApproval"}, report(DrainState.ACKNOWLEDGED), approve.Go.ASK),
        ({"execution": "AfterApproval", "approved": True}, report(DrainState.ACKNOWLEDGED), approve.Go.GO),
        ({"execution": "AfterApproval"}, report(DrainState.FLUSHING), approve.Go.GO),
        ({"execution": "PlanOnly"}, report(DrainState.ACKNOWLEDGED), approve.Go.PLANNING),
        ({"execution": "PlanOnly"}, report(DrainState.ACKNOWLEDGED, reason="Planned"), approve.Go.PLANNED),
    ],
)
def test_approve(wish: dict[str, Any], given: DrainReport, expected: approve.Go) -> None:
    assert approve.decide(spec(**wish), given) is expected


@pytest.mark.parametrize(
    ("state", "stopped", "flushed"),
    [
        (DrainState.ACKNOWLEDGED, "Unknown", "False"),
        (DrainState.STOPPING, "False", "False"),
        (DrainState.COMMITTING, "True", "False"),
        (DrainState.FLUSHING, "True", "False"),
        (DrainState.STALLED, "True", "False"),
        (DrainState.REPORTING, "True", "True"),
        (DrainState.DRAINED, "True", "True"),
    ],
)
def test_stopped_and_flushed(state: DrainState, stopped: str, flushed: str) -> None:
    assert stop_sources.decide(state)[0] == stopped
    assert flush.decide(report(state), "Drain")[0] == flushed


def test_a_stop_does_not_claim_to_have_fired_windows() -> None:
    assert "the state stays" in flush.decide(report(DrainState.DRAINED), "Stop")[2]


DONE = report(DrainState.DRAINED, driver_pod_uid="uid-one")


@pytest.mark.parametrize(
    ("seen", "given", "expected"),
    [
        (application("RUNNING", driver()), DONE, executors.Driver.CONFIRMED),
        (application("RUNNING", driver("two")), DONE, executors.Driver.OTHER),
        (application("RUNNING", driver(uid="another")), DONE, executors.Driver.OTHER),
        (application("RUNNING", driver()), report(DrainState.DRAINED), executors.Driver.OTHER),
        (application("RUNNING", driver(terminating=True)), DONE, executors.Driver.OTHER),
        (application("PENDING_RERUN"), DONE, executors.Driver.OTHER),
        (application("COMPLETED", driver(phase="Succeeded")), DONE, executors.Driver.GONE),
        (None, DONE, executors.Driver.GONE),
    ],
)
def test_confirm_driver(seen: Application | None, given: DrainReport, expected: executors.Driver) -> None:
    author, detail = executors.confirm_driver(seen, given)
    assert author is expected
    assert bool(detail) == (author is executors.Driver.OTHER)


@pytest.mark.parametrize(
    ("drained", "expected", "exceptions", "live", "missing"),
    [
        ("1-2", 2, [], ["1", "2"], []),
        ("", 0, [], [], []),
        ("1-4711,4713-10000", 10000, [("4712", "Gone")], ["4711", "4713"], []),
        ("1,3", 3, [], ["1", "2", "3"], ["2"]),
        ("1,3", 3, [("2", "Idle")], ["1", "2", "3"], []),
        ("1,3", 3, [("2", "Silent")], ["2"], ["2"]),
        ("1-2", 2, [], ["3"], []),
        ("1,3", 2, [], ["1", "2", "3"], []),
        ("1,3", 3, [("4", "Silent")], ["2"], ["2"]),
        ("1,3", 2, [("4", "Silent")], ["2", "4"], ["4"]),
        ("1,3", 52, [(str(number), "Gone") for number in range(4, 54)], ["2", "54"], ["2"]),
        ("1-2", 3, [], ["3"], ["3"]),
        ("", 0, [], ["1"], []),
        ("1-2", 2, [], ["driver"], ["driver"]),
        ("nonsense", 1, [], ["10", "9"], ["9", "10"]),
    ],
)
def test_unaccounted(drained: str, expected: int, exceptions: list[tuple[str, str]], live: list[str], missing: list[str]) -> None:
    given = report(
        DrainState.DRAINED,
        executors_drained=drained,
        executors_expected=expected,
        executor_exceptions=tuple(ExecutorException(id=id_, state=state) for id_, state in exceptions),
    )
    assert executors.unaccounted(given, live) == missing


POD = PodName("app-driver", "")


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        ({"application": application("RUNNING", driver())}, "SUSPEND"),
        ({"application": application("COMPLETED", driver(phase="Succeeded"))}, "SUSPEND"),
        ({"application": application("PENDING_RERUN")}, "WAIT"),
        ({"application": application("PENDING_RERUN"), "forced": True}, "SUSPEND"),
        ({"application": application("FAILING", driver(phase="Failed"))}, "WAIT"),
        ({"application": application("RUNNING", driver(), suspend=True), "left_over": [POD]}, "WAIT"),
        ({"application": application("SUSPENDED", driver(terminating=True), suspend=True), "left_over": [POD]}, "WAIT"),
        ({"application": application("SUSPENDED", suspend=True), "left_over": [POD]}, "WAIT"),
        ({"application": application("SUSPENDED", driver(phase="Failed"), suspend=True)}, "WAIT"),
        ({"application": application("SUSPENDING", suspend=True)}, "WAIT"),
        ({"application": application("SUSPENDED", suspend=True)}, "DONE"),
        ({"application": application("COMPLETED", driver(phase="Succeeded"), suspend=True), "requested_in": "COMPLETED"}, "DONE"),
        ({"application": application("SUSPENDED", suspend=True), "requested_in": "PENDING_RERUN"}, "WAIT"),
        ({"application": application("SUSPENDED", suspend=True), "requested_in": "PENDING_RERUN", "after_seconds": 31}, "DONE"),
        ({"application": application("RUNNING", driver()), "after": "Delete"}, "DELETE"),
        ({"application": application("RUNNING", driver()), "after": "Delete", "forced": True}, "SUSPEND"),
        ({"application": None, "after": "Delete", "left_over": [POD]}, "WAIT"),
        ({"application": None, "after": "Delete"}, "DONE"),
    ],
)
def test_scale_down(fields: dict[str, Any], action: str) -> None:
    given: dict[str, Any] = {"after": "Suspend", "forced": False, "left_over": [], "requested": NOW, "requested_in": "RUNNING", **fields}
    now = NOW + timedelta(seconds=given.pop("after_seconds", 1))
    assert scale_down.decide(**given, now=now).name == action


CANCEL = Ending(Phase.CANCELLED, Reason.CANCEL_REQUESTED, "")
TIMEOUT = Ending(Phase.TIMED_OUT, Reason.DEADLINE_EXCEEDED, "")
SILENCE = Ending(Phase.FAILED, Reason.AGENT_NOT_RESPONDING, "")
LATE = Ending(Phase.DRAINED, Reason.WITHDRAWAL_TOO_LATE, "")


@pytest.mark.parametrize(
    ("before", "deleted", "cancel", "limit", "expected"),
    [
        (None, False, False, None, None),
        (None, False, True, None, Reason.CANCEL_REQUESTED),
        (None, True, True, None, Reason.DELETED),
        (None, False, False, SILENCE, Reason.AGENT_NOT_RESPONDING),
        (None, False, True, SILENCE, Reason.CANCEL_REQUESTED),
        (None, False, True, TIMEOUT, Reason.DEADLINE_EXCEEDED),
        (TIMEOUT, False, True, None, Reason.DEADLINE_EXCEEDED),
        (LATE, False, True, None, None),
        (LATE, True, False, None, None),
        (LATE, False, True, TIMEOUT, Reason.DEADLINE_EXCEEDED),
    ],
)
def test_withdrawal_wanted(before: Ending | None, deleted: bool, cancel: bool, limit: Ending | None, expected: str | None) -> None:
    ending = withdraw.wanted(status(withdrawal=before), deleted=deleted, cancel=cancel, limit=limit)
    assert (None if ending is None else ending.reason) == expected


@pytest.mark.parametrize(
    ("ending", "given", "fields", "answer"),
    [
        (CANCEL, None, {"notified": False}, "END"),
        (CANCEL, None, {}, "END"),
        (CANCEL, None, {"malformed": True}, "WAIT"),
        (CANCEL, None, {"malformed": True, "driver_alive": False}, "END"),
        (SILENCE, None, {"malformed": True}, "END"),
        (CANCEL, report(DrainState.ACKNOWLEDGED), {}, "WAIT"),
        (CANCEL, report(DrainState.STOPPING), {}, "WAIT"),
        (CANCEL, report(DrainState.STOPPING), {"driver_alive": False}, "END"),
        (CANCEL, report(DrainState.WITHDRAWN), {}, "END"),
        (CANCEL, report(DrainState.COMMITTING), {}, "TOO_LATE"),
        (CANCEL, report(DrainState.COMMITTING), {"driver_alive": False}, "TOO_LATE"),
        (CANCEL, report(DrainState.STALLED), {}, "TOO_LATE"),
        (CANCEL, report(DrainState.DRAINED), {}, "TOO_LATE"),
        (CANCEL, report(DrainState.STOPPING, withdrawal="TooLate"), {}, "TOO_LATE"),
        (TIMEOUT, report(DrainState.STOPPING), {}, "WAIT"),
        (TIMEOUT, report(DrainState.FLUSHING), {}, "END"),
        (TIMEOUT, report(DrainState.STALLED), {}, "END"),
        (SILENCE, report(DrainState.ACKNOWLEDGED), {}, "WAIT"),
    ],
)
def test_withdrawal_answered(ending: Ending, given: DrainReport | None, fields: dict[str, bool], answer: str) -> None:
    facts = {"malformed": False, "notified": True, "driver_alive": True, **fields}
    assert withdraw.decide(ending, given, **facts).name == answer


def complete(**fields: Any) -> DrainStatus:
    made = status(application_uid="app-uid", **fields)
    made.set(ConditionType.EXECUTORS_DRAINED, "True", Reason.COMPLETED)
    return made


ACTIVE = {"application_uid": "app-uid"}
RUNNING = application("RUNNING", driver())


@pytest.mark.parametrize(
    ("wish", "known", "seen", "given", "expected"),
    [
        ({}, status(**ACTIVE), RUNNING, None, None),
        ({}, status(**ACTIVE), RUNNING, report(DrainState.FLUSHING), None),
        ({}, status(), None, None, None),
        ({}, status(**ACTIVE), None, None, (Phase.ABANDONED, Reason.APPLICATION_GONE)),
        ({}, status(**ACTIVE), application(uid="another"), None, (Phase.ABANDONED, Reason.APPLICATION_GONE)),
        ({}, complete(), None, None, None),
        ({}, status(**ACTIVE), RUNNING, report(DrainState.REJECTED, reason="UnknownQuery"), (Phase.REJECTED, "UnknownQuery")),
        ({}, status(**ACTIVE), RUNNING, report(DrainState.FAILED, reason="CheckpointBroken"), (Phase.FAILED, "CheckpointBroken")),
        ({}, status(**ACTIVE), RUNNING, report(DrainState.FAILED), (Phase.FAILED, "Failed")),
        (
            {},
            status(**ACTIVE),
            RUNNING,
            report(DrainState.FAILED, reason="DeadlineExceeded"),
            (Phase.TIMED_OUT, Reason.DEADLINE_EXCEEDED),
        ),
        (
            {},
            status(**ACTIVE),
            RUNNING,
            report(DrainState.FAILED, reason="BatchStillRunning"),
            (Phase.TIMED_OUT, Reason.BATCH_STILL_RUNNING),
        ),
        (
            {"on_timeout": "ForceStop"},
            status(**ACTIVE),
            RUNNING,
            report(DrainState.FAILED, reason="DeadlineExceeded"),
            (Phase.FORCE_STOPPED, Reason.DEADLINE_EXCEEDED),
        ),
        ({}, status(**ACTIVE), RUNNING, report(DrainState.WITHDRAWN), (Phase.CANCELLED, Reason.WITHDRAWN)),
        (
            {},
            status(**ACTIVE, withdrawal=CANCEL),
            RUNNING,
            report(DrainState.WITHDRAWN),
            (Phase.CANCELLED, Reason.CANCEL_REQUESTED),
        ),
        ({}, status(**ACTIVE), application("FAILED"), report(DrainState.FLUSHING), (Phase.FAILED, Reason.APPLICATION_ENDED)),
        ({}, status(**ACTIVE), application("FAILED"), report(DrainState.DRAINED), None),
        ({}, status(**ACTIVE), application("PENDING_RERUN"), report(DrainState.FLUSHING), None),
    ],
)
def test_verdict(wish: dict[str, Any], known: DrainStatus, seen: Application | None, given: DrainReport | None, expected: Any) -> None:
    ending = verdict.decide(spec(**wish), known, seen, given)
    assert (None if ending is None else (ending.phase, ending.reason)) == expected


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("wish", "known", "pod", "answered", "expected"),
    [
        ({}, {}, None, False, limits.Limits()),
        ({"expiration": at(9)}, {}, None, False, limits.Limits(expiration=at(9))),
        ({}, {"notification_time": at(-5)}, driver(), False, limits.Limits(acknowledgement=at(60))),
        ({}, {"notification_time": at(5)}, driver(), False, limits.Limits(acknowledgement=at(65))),
        ({}, {"notification_time": at(5)}, driver(phase="Pending"), False, limits.Limits()),
        ({}, {"notification_time": at(5)}, None, False, limits.Limits()),
        ({"expiration": at(9)}, {"notification_time": at(5)}, driver(), True, limits.Limits(expiration=at(9))),
        ({"timeout": 10, "expiration": at(1)}, {"start_time": at(2)}, driver(), True, limits.Limits(deadline=at(12))),
        ({"timeout": 10}, {"start_time": at(2), "scale_down_time": at(11)}, None, True, limits.Limits(deadline=at(131))),
    ],
)
def test_limits(wish: dict[str, Any], known: dict[str, Any], pod: DriverPod | None, answered: bool, expected: limits.Limits) -> None:
    given = report(DrainState.ACKNOWLEDGED) if answered else None
    assert limits.limits_of(spec(**wish), status(**known), pod, given) == expected


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (limits.Limits(), None),
        (limits.Limits(deadline=at(5)), 5.0),
        (limits.Limits(deadline=at(-5)), 0.0),
        (limits.Limits(expiration=at(9), acknowledgement=at(3)), 3.0),
    ],
)
def test_next_limit(given: limits.Limits, seconds: float | None) -> None:
    assert limits.next_limit(given, NOW) == seconds
