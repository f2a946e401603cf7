"""The times at which patience ends, as tables."""

from types import SimpleNamespace
from typing import Any

import pytest
from spark_drain_operator.engine.conditions import Condition, Conditions
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain import limits
from spark_drain_operator.kinds.drain.kind import DrainKind
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase
from spark_drain_operator.storage.pods import DriverPod
from spark_drain_store import DrainState

from tests.operator.kinds.drain.samples import NOW, at, driver, report, spec, status

COMPLETE = Conditions(list(ConditionType), [Condition("ExecutorsDrained", "True", "Completed", "", NOW)])


@pytest.mark.parametrize(
    ("wish", "known", "pod", "answered", "expected"),
    [
        ({}, {}, None, False, limits.Limits()),
        ({"expiration": at(9)}, {}, None, False, limits.Limits(expiration=at(9))),
        ({"expiration_seconds": 7}, {"creation_time": at(2)}, None, False, limits.Limits(expiration=at(9))),
        ({"expiration_seconds": 7, "expiration": at(5)}, {"creation_time": at(2)}, None, False, limits.Limits(expiration=at(5))),
        ({"expiration_seconds": 7, "expiration": at(10)}, {"creation_time": at(2)}, None, False, limits.Limits(expiration=at(9))),
        ({}, {"notification_time": at(-5)}, driver(), False, limits.Limits(acknowledgement=at(60))),
        ({}, {"notification_time": at(5)}, driver(), False, limits.Limits(acknowledgement=at(65))),
        ({}, {"notification_time": at(5)}, driver(phase="Pending"), False, limits.Limits()),
        ({}, {"notification_time": at(5)}, None, False, limits.Limits()),
        ({"expiration": at(9)}, {"notification_time": at(5)}, driver(), True, limits.Limits(expiration=at(9))),
        ({"timeout": 10, "expiration": at(1)}, {"start_time": at(2)}, driver(), True, limits.Limits(deadline=at(12))),
        ({"timeout": 10, "expiration": at(1)}, {"start_time": at(2), "conditions": COMPLETE}, None, True, limits.Limits()),
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


@pytest.mark.parametrize(("state", "done", "seconds"), [("Drained", -9, None), ("Drained", -1, 0.0), ("Flushing", -9, 0.0)])
def test_a_deadline_that_was_kept_brings_no_pass_forward(state: str, done: float, seconds: float | None) -> None:
    """The operator would look again and again at an application that it may not read."""
    current: Any = SimpleNamespace(
        spec=spec(timeout=95),
        status=status(start_time=at(-100)),
        application=None,
        report=report(DrainState(state), updated_at=at(done)),
        now=NOW,
    )
    kind: Any = None
    assert DrainKind.seconds_to_limit(kind, current) == seconds


@pytest.mark.parametrize(
    ("state", "drained_at", "now", "expected"),
    [
        (DrainState.DRAINED, at(5), at(10), True),
        (DrainState.REPORTING, at(5), at(10), True),  # the next run repeats it
        (DrainState.REPORTING, at(11), at(12), False),
        (DrainState.REPORTING, None, at(10), False),
        (DrainState.STOPPING, at(5), at(10), False),
        (DrainState.DRAINED, at(5), at(9), False),  # no deadline has passed
    ],
)
def test_what_was_done_before_the_deadline_stays_done(state: DrainState, drained_at: Any, now: Any, expected: bool) -> None:
    assert limits.kept(limits.Limits(deadline=at(10)), report(state, drained_at=drained_at), now) is expected


@pytest.mark.parametrize(
    ("wish", "phase"),
    [
        ({}, "TimedOut"),
        ({"on_timeout": "ForceStop"}, "ForceStopped"),
        ({"on_timeout": "ForceStop", "execution": "PlanOnly"}, "TimedOut"),
        ({"on_timeout": "ForceStop", "execution": "AfterApproval"}, "TimedOut"),
        ({"on_timeout": "ForceStop", "execution": "AfterApproval", "approved": True}, "ForceStopped"),
    ],
)
def test_only_a_drain_that_is_carried_out_stops_by_force(wish: dict[str, Any], phase: str) -> None:
    """An older definition in the cluster lets a plan with ForceStop through."""
    current: Any = SimpleNamespace(spec=spec(**wish), now=NOW, report=None)
    ending = limits.reached(limits.Limits(deadline=at(-1)), current)
    assert ending is not None
    assert ending.phase == phase


@pytest.mark.parametrize(
    ("begun", "reason", "seconds"), [(-90, "CancelRequested", None), (-90, "WithdrawalTooLate", 5.0), (None, "WithdrawalTooLate", None)]
)
def test_a_wish_that_came_too_late_lifts_no_deadline(begun: float | None, reason: str, seconds: float | None) -> None:
    """An expiration, whose time is over as well, is lifted."""
    start = None if begun is None else at(begun)
    asked = status(start_time=start, withdrawal=Ending(Phase.CANCELLED, reason, ""))
    current: Any = SimpleNamespace(spec=spec(timeout=95, expiration=at(-60)), status=asked, application=None, report=None, now=NOW)
    kind: Any = None
    assert DrainKind.seconds_to_limit(kind, current) == seconds


BEGUN = {"drain_id": "mine", "start_time": at(-100)}
WISH = Ending(Phase.CANCELLED, "CancelRequested", "spec.cancel was set")


@pytest.mark.parametrize(
    ("wish", "known", "deleted", "reason"),
    [
        ({}, {}, False, ""),
        ({}, {}, True, "Deleted"),
        ({"cancel": True}, {}, False, "CancelRequested"),
        ({"expiration": at(-1)}, {}, False, "Expired"),
        ({"expiration": at(1)}, {}, False, ""),
        ({"timeout": 50}, BEGUN, False, ""),  # the agent may still answer
        ({"timeout": 50}, {**BEGUN, "withdrawal": WISH, "withdrawal_time": at(-59)}, False, ""),
        ({"timeout": 50}, {**BEGUN, "withdrawal": WISH, "withdrawal_time": at(-60)}, False, "CancelRequested"),
        ({"cancel": True}, BEGUN, True, ""),
    ],
)
def test_overdue(wish: dict[str, Any], known: dict[str, Any], deleted: bool, reason: str) -> None:
    now = status(**known)
    ending = limits.overdue(spec(**wish), now, None, deleted=deleted)
    assert (ending.reason if ending is not None else "") == reason
    assert (now.withdrawal is not None) == bool(known), "the wait for the agent begins"


@pytest.mark.parametrize("known", [{}, {"withdrawal": WISH, "withdrawal_time": at(-60)}], ids=["not noted", "noted"])
@pytest.mark.parametrize(
    ("state", "timeout", "reason"),
    [
        (DrainState.STOPPING, 1800, "CancelRequested"),
        (DrainState.FLUSHING, 1800, ""),
        (DrainState.DRAINED, 1800, ""),
        (DrainState.FLUSHING, 50, "DeadlineExceeded"),
    ],
)
def test_what_cannot_be_looked_at_is_not_cancelled_past_the_point_of_no_return(
    known: dict[str, Any], state: DrainState, timeout: int, reason: str
) -> None:
    """The agent was never told, because the request cannot be written; the report is read."""
    now = status(**BEGUN, **{"withdrawal_time": at(-60), **known})
    given = report(state, drained_at=at(-1) if state is DrainState.DRAINED else None)
    ending = limits.overdue(spec(cancel=True, timeout=timeout), now, given, deleted=False)
    assert (ending.reason if ending is not None else "") == reason


@pytest.mark.parametrize(("done", "waits"), [(-51, True), (-49, False)])
def test_what_was_drained_in_time_is_not_overdue(done: float, waits: bool) -> None:
    known = status(**BEGUN, withdrawal=WISH, withdrawal_time=at(-60))
    given = report(DrainState.DRAINED, drained_at=at(done))
    assert (limits.overdue(spec(timeout=50), known, given, deleted=False) is None) == waits


FORCED = Ending(Phase.FORCE_STOPPED, "DeadlineExceeded", "not finished in time")


@pytest.mark.parametrize(("deleted", "phase"), [(False, None), (True, "ForceStopped")])
def test_what_was_stopped_by_force_waits_until_it_can_be_started_again(deleted: bool, phase: str | None) -> None:
    known = status(**BEGUN, withdrawal=FORCED, withdrawal_time=at(-600), scale_down_time=at(-600))
    ending = limits.overdue(spec(timeout=50, on_timeout="ForceStop", after_drain="Restart"), known, None, deleted=deleted)
    assert (ending.phase if ending is not None else None) == phase


@pytest.mark.parametrize(
    ("known", "deleted", "phase"),
    [
        ({"withdrawal": FORCED, "withdrawal_time": at(-600)}, False, None),
        ({"withdrawal": FORCED, "withdrawal_time": at(-600)}, True, "TimedOut"),
        ({"withdrawal": FORCED, "withdrawal_time": at(-59)}, True, None),
        ({"withdrawal": FORCED, "withdrawal_time": at(-600), "scale_down_time": at(-600)}, False, "ForceStopped"),
        ({"withdrawal": FORCED, "withdrawal_time": at(-600), "scale_down_time": at(-600)}, True, "ForceStopped"),
    ],
)
def test_nothing_is_called_stopped_by_force_whose_suspension_was_refused(known: dict[str, Any], deleted: bool, phase: str | None) -> None:
    """It is tried again until it can be done; only who deletes the drain gives it up."""
    ending = limits.overdue(spec(on_timeout="ForceStop", timeout=50), status(**BEGUN, **known), None, deleted=deleted)
    assert (None if ending is None else ending.phase) == phase


@pytest.mark.parametrize(
    ("state", "timeout", "deleted", "phase"),
    [
        (DrainState.STOPPING, 30, False, None),
        (DrainState.FLUSHING, 30, False, None),
        (DrainState.FLUSHING, 41, True, None),
        (DrainState.FLUSHING, 40, True, "TimedOut"),
    ],
)
def test_a_deadline_at_which_nobody_can_look_still_stops_by_force(
    state: DrainState, timeout: int, deleted: bool, phase: str | None
) -> None:
    """As soon as it can be done: what was noted before would be a wish that stays."""
    now = status(**BEGUN)
    ending = limits.overdue(spec(on_timeout="ForceStop", timeout=timeout), now, report(state), deleted=deleted)
    assert (None if ending is None else ending.phase) == phase
    assert now.withdrawal is None


@pytest.mark.parametrize(
    ("deleted", "withdrawn", "phase"), [(False, None, None), (True, None, None), (True, at(-299), None), (True, at(-300), "Failed")]
)
def test_a_complete_drain_whose_application_cannot_be_scaled_down_is_deleted_all_the_same(
    deleted: bool, withdrawn: Any, phase: str | None
) -> None:
    now = status(**BEGUN, conditions=COMPLETE, withdrawal_time=withdrawn)
    ending = limits.overdue(spec(), now, None, deleted=deleted)
    assert (None if ending is None else ending.phase) == phase
    assert (now.withdrawal_time is not None) == deleted
