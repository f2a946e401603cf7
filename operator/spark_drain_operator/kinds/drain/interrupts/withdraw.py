"""Interrupt: the drain is no longer wanted, or its time is over."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from spark_drain_store import DrainReport, DrainState, StoreError, WithdrawalAnswer

from spark_drain_operator.applications.protocol import current_driver
from spark_drain_operator.clock import later
from spark_drain_operator.engine.outcome import DONE, Ended, Outcome, Waiting
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain.limits import PATIENCE_SECONDS, Limits, give_up_at, kept, limits_of, reached
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import SPEC_CHANGED_TOO_EARLY, SUPERSEDED_TOO_LATE, ConditionType, Phase, Reason, message_of
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.kinds.drain.steps import confirm_executors, find_run

__all__ = ["Answer", "decide", "run", "superseded", "too_late", "wanted"]


_SUPERSEDED = (Reason.SPEC_CHANGED, Reason.STALE_RUN_ID)


class Answer(Enum):
    """What becomes of a wish to end a drain."""

    END = "end"
    WAIT = "wait for the agent"
    TOO_LATE = "too late"


def wanted(status: DrainStatus, *, deleted: bool, cancel: bool, limit: Ending | None) -> Ending | None:
    """Return how the drain should end now; a wish that the agent was told of stays, but a deadline overrides a wish that came too late."""
    if status.wish is not None:
        return status.wish
    if limit is not None and limit.reason == Reason.DEADLINE_EXCEEDED:
        return limit
    if status.withdrawal is not None:
        return None
    if limit is not None and limit.reason in _SUPERSEDED:
        return limit
    if deleted:
        return Ending(Phase.CANCELLED, Reason.DELETED, message_of(Reason.DELETED))
    if cancel:
        return Ending(Phase.CANCELLED, Reason.CANCEL_REQUESTED, message_of(Reason.CANCEL_REQUESTED))
    return limit


def superseded(spec: DrainSpec, next_run_id: str, *, committed: bool) -> Ending | None:
    """Return how a drain ends whose application is a next version by now, or another run than the only one that was meant.

    Parameters
    ----------
    spec
        What was asked.
    next_run_id
        The run of the next version, or "" where its driver was not seen.
    committed
        Whether the agent may be past the point of no return: it can only go on then.
    """
    if committed or not next_run_id:
        return None
    if spec.run_id:
        return Ending(Phase.REJECTED, Reason.STALE_RUN_ID, message_of(Reason.STALE_RUN_ID, wanted=spec.run_id, found=next_run_id))
    return Ending(Phase.FAILED, Reason.SPEC_CHANGED, SPEC_CHANGED_TOO_EARLY)


def decide(
    ending: Ending, report: DrainReport | None, *, malformed: bool, notified: bool, driver_alive: bool, forward_only: bool
) -> Answer:
    """Return whether the drain may end.

    Parameters
    ----------
    ending
        How.
    report
        Read after the notification was marked as withdrawn: an agent that has not answered by then will see the mark before it
        passes the point of no return.
    malformed
        A report exists and cannot be read.
    notified
        Whether a notification was ever written.
    driver_alive
        Whether any driver may still run a container.
    forward_only
        Whether the agent is past the point of no return, or was before its report was lost.
    """
    if not notified or (report is not None and report.state.given_up):
        return Answer.END
    if forward_only or (report is not None and report.withdrawal == WithdrawalAnswer.TOO_LATE):
        return Answer.END if ending.phase is Phase.TIMED_OUT else Answer.TOO_LATE
    if report is None:
        # Whoever wrote what cannot be read may be past the point of no return; only running out of patience ends that.
        return Answer.WAIT if malformed and driver_alive and ending.phase is Phase.CANCELLED else Answer.END
    return Answer.WAIT if driver_alive else Answer.END


def too_late(ending: Ending) -> Ending:
    """Return what is noted of a wish that the agent cannot fulfil any more."""
    asked = SUPERSEDED_TOO_LATE if ending.reason in _SUPERSEDED else ending.message
    return Ending(Phase.DRAINED, Reason.WITHDRAWAL_TOO_LATE, f"{asked}; {message_of(Reason.WITHDRAWAL_TOO_LATE)}")


def _drained_in_time(drain: DrainPass, limits: Limits) -> bool:
    """Whether the agent was done before the deadline, and only the operator is late, or the next run of a driver that was lost then."""
    report = drain.report
    if report is None or limits.deadline is None or not kept(limits, report, drain.now):
        return False
    if report.state is DrainState.DRAINED:
        found, _ = (None, []) if drain.unreadable else confirm_executors.objection(drain, report)
        if found is None or found[0] is Reason.EXECUTORS_UNACCOUNTED:
            return found is None
    return drain.now < later(limits.deadline, PATIENCE_SECONDS)


def _not_running(drain: DrainPass) -> Ending | None:
    """Return how a drain ends whose application has ended before its agent answered: `spec.ifNotRunning` holds until then."""
    if not drain.status.drain_id or drain.report is not None or drain.unreadable or current_driver(drain.application) is not None:
        return None
    if drain.status.answered or drain.malformed:  # nobody knows how far it is: `verdict` ends it
        return None
    return find_run.not_running(drain)


def run(drain: DrainPass) -> Outcome:
    """Mark the notification as withdrawn and wait for the agent's answer, for as long as it may take to acknowledge a request."""
    status = drain.status
    limits = limits_of(drain.spec, status, current_driver(drain.application), drain.report)
    limit = superseded(drain.spec, status.next_run_id, committed=drain.may_be_committed)
    if _drained_in_time(drain, limits):
        if status.withdrawal is not None and status.withdrawal.phase is Phase.TIMED_OUT:
            status.withdrawal = status.withdrawal_time = None  # noted while nobody could look
    elif limit is None:
        limit = reached(limits, drain)
    ending = wanted(status, deleted=drain.deleted, cancel=drain.spec.cancel, limit=limit or _not_running(drain))
    if ending is None:
        return DONE
    drain.needs_fresh_reads()
    if ending.phase is Phase.FORCE_STOPPED:
        status.withdrawal, status.withdrawal_time = ending, status.withdrawal_time or drain.now
        return DONE  # the force_stop step does it; no answer of the agent is needed
    notification = drain.notification
    if notification is not None and not notification.withdrawn:
        try:
            drain.update_notification(withdrawn=True)
        except StoreError:
            if not drain.complete:  # then it is too late, whatever the agent says
                raise
        drain.messages.reread_reports()
    application, report = drain.application, None if drain.complete else drain.report
    answer = decide(
        ending,
        report,
        malformed=drain.malformed,
        notified=notification is not None or bool(status.drain_id),
        driver_alive=bool(drain.unreadable) or (application is not None and application.driver_alive),
        forward_only=drain.forward_only if report is None else report.state.forward_only,
    )
    if answer is Answer.END:
        return Ended(ending)
    status.withdrawal_time = status.withdrawal_time or drain.now
    if answer is Answer.TOO_LATE:
        status.withdrawal = too_late(ending)
        return DONE
    status.withdrawal = ending
    left = (give_up_at(drain.spec, status.withdrawal_time) - drain.now).total_seconds()
    message = message_of(Reason.NO_ANSWER_TO_WITHDRAWAL, seconds=drain.spec.acknowledge_timeout)
    if left <= 0:
        return Ended(replace(ending, message=f"{ending.message}; {message}"))
    until_stalled = left - drain.spec.acknowledge_timeout / 2
    if until_stalled <= 0:
        status.set(ConditionType.STALLED, "True", Reason.AGENT_NOT_RESPONDING, f"{ending.message}; the agent has not answered yet")
    look_again = left if until_stalled <= 0 else until_stalled
    return Waiting(min(look_again, drain.settings.resync_seconds), f"{ending.message}; waiting for the agent to undo the drain")
