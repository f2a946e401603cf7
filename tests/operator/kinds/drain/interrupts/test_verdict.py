"""How agent and application end a drain, as a table."""

from typing import Any

import pytest
from spark_drain_operator.applications.protocol import Application
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain.interrupts import verdict
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_store import DrainReport, DrainState

from tests.operator.kinds.drain.samples import NOW, application, at, driver, report, spec, status

CANCEL = Ending(Phase.CANCELLED, Reason.CANCEL_REQUESTED, "")


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
        ({}, complete(), RUNNING, report(DrainState.WITHDRAWN), None),
        ({}, complete(), application("COMPLETED"), report(DrainState.STOPPING), None),
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
            {"on_timeout": "ForceStop", "timeout": 60},
            status(**ACTIVE, start_time=at(-60)),
            RUNNING,
            report(DrainState.FAILED, reason="DeadlineExceeded"),
            (Phase.FORCE_STOPPED, Reason.DEADLINE_EXCEEDED),
        ),
        (
            {"on_timeout": "ForceStop", "timeout": 60},
            status(**ACTIVE, start_time=at(-55)),
            RUNNING,
            report(DrainState.FAILED, reason="DeadlineExceeded"),
            None,
        ),
        (
            {"on_timeout": "ForceStop", "timeout": 60},
            status(**ACTIVE, start_time=at(-5)),
            RUNNING,
            report(DrainState.FAILED, reason="DeadlineExceeded"),
            (Phase.TIMED_OUT, Reason.DEADLINE_EXCEEDED),
        ),
        (
            {"on_timeout": "ForceStop"},
            status(**ACTIVE),
            RUNNING,
            report(DrainState.FAILED, reason="DeadlineExceeded"),
            (Phase.TIMED_OUT, Reason.DEADLINE_EXCEEDED),
        ),
        (
            {"on_timeout": "ForceStop", "execution": "PlanOnly"},
            status(**ACTIVE),
            RUNNING,
            report(DrainState.FAILED, reason="DeadlineExceeded"),
            (Phase.TIMED_OUT, Reason.DEADLINE_EXCEEDED),
        ),
        ({}, status(**ACTIVE), RUNNING, report(DrainState.WITHDRAWN), (Phase.CANCELLED, Reason.WITHDRAWN)),
        (
            {},
            status(**ACTIVE, withdrawal=CANCEL),
            RUNNING,
            report(DrainState.WITHDRAWN),
            (Phase.CANCELLED, Reason.CANCEL_REQUESTED),
        ),
        ({}, status(**ACTIVE, next_run_id="two"), RUNNING, report(DrainState.WITHDRAWN), (Phase.FAILED, Reason.SPEC_CHANGED)),
        ({}, status(**ACTIVE), application("FAILED"), report(DrainState.FLUSHING), (Phase.FAILED, Reason.APPLICATION_ENDED)),
        ({}, status(**ACTIVE), application("FAILED"), report(DrainState.DRAINED), None),
        ({}, status(**ACTIVE), application("PENDING_RERUN"), report(DrainState.FLUSHING), None),
    ],
)
def test_verdict(wish: dict[str, Any], known: DrainStatus, seen: Application | None, given: DrainReport | None, expected: Any) -> None:
    ending = verdict.decide(spec(**wish), known, seen, given)
    assert (None if ending is None else (ending.phase, ending.reason)) == expected


@pytest.mark.parametrize("reason", ["DeadlineExceeded", "BatchStillRunning"])
@pytest.mark.parametrize("policy", ["Fail", "ForceStop"])
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (CANCEL, (Phase.CANCELLED, Reason.CANCEL_REQUESTED)),
        (Ending(Phase.FAILED, Reason.SPEC_CHANGED, ""), (Phase.FAILED, Reason.SPEC_CHANGED)),
    ],
)
def test_a_wish_that_is_answered_after_the_deadline_stays(asked: Ending, expected: Any, policy: str, reason: str) -> None:
    """The agent's own deadline passes while it comes up."""
    known = status(**ACTIVE, start_time=at(-60), withdrawal=asked)
    ending = verdict.decide(spec(on_timeout=policy, timeout=60), known, RUNNING, report(DrainState.FAILED, reason=reason))
    assert ending is not None
    assert (ending.phase, ending.reason) == expected


def test_a_wish_for_the_deadline_ends_with_what_the_agent_says() -> None:
    asked = Ending(Phase.TIMED_OUT, Reason.DEADLINE_EXCEEDED, "the agent was at Stopping")
    given = report(DrainState.FAILED, reason="BatchStillRunning", message="still running: batch 7")
    ending = verdict.decide(spec(timeout=60), status(**ACTIVE, start_time=at(-60), withdrawal=asked), RUNNING, given)
    assert ending == Ending(Phase.TIMED_OUT, Reason.BATCH_STILL_RUNNING, "still running: batch 7")


def test_an_agent_whose_clock_is_ahead_has_nobody_stopped_by_force() -> None:
    given = report(DrainState.FAILED, reason="DeadlineExceeded", message="undone", updated_at=at(1860))
    ending = verdict.decide(spec(on_timeout="ForceStop"), status(**ACTIVE, start_time=NOW), RUNNING, given)
    assert ending is not None
    assert ending.phase is Phase.TIMED_OUT
    assert "undone; the agent gave up at 2030-01-01T00:31:00Z by its clock, and the deadline is 2030-01-01T00:30:00Z" in ending.message
    assert "or timeoutSeconds was changed" in ending.message


@pytest.mark.parametrize(
    ("state", "asked", "reason", "words"),
    [
        (DrainState.ACKNOWLEDGED, None, Reason.APPLICATION_ENDED, "nothing was drained"),
        (DrainState.STOPPING, None, Reason.APPLICATION_ENDED, "nothing was drained"),
        (DrainState.STOPPING, CANCEL, Reason.CANCEL_REQUESTED, ""),
        (DrainState.FLUSHING, CANCEL, Reason.APPLICATION_ENDED, "start the same version again to complete it"),
    ],
)
def test_an_application_that_ends_in_the_middle(state: DrainState, asked: Ending | None, reason: str, words: str) -> None:
    """Before the point of no return there is no journal to complete."""
    ending = verdict.decide(spec(), status(**ACTIVE, withdrawal=asked), application("SUSPENDED", suspend=True), report(state))
    assert ending is not None
    assert ending.reason == reason
    assert words in ending.message


@pytest.mark.parametrize(
    ("state", "asked", "phase"),
    [
        (DrainState.ACKNOWLEDGED, None, Phase.NOTHING_TO_DRAIN),
        (DrainState.STOPPING, CANCEL, Phase.CANCELLED),
        (DrainState.FLUSHING, None, Phase.FAILED),
    ],
)
def test_an_application_that_ends_before_anything_was_touched_is_one_that_does_not_run(
    state: DrainState, asked: Ending | None, phase: Phase
) -> None:
    nothing = Ending(Phase.NOTHING_TO_DRAIN, Phase.NOTHING_TO_DRAIN, "it is not running")
    known = status(**ACTIVE, withdrawal=asked)
    ending = verdict.decide(spec(), known, application("SUSPENDED", suspend=True), report(state), not_running=nothing)
    assert ending is not None
    assert ending.phase is phase
