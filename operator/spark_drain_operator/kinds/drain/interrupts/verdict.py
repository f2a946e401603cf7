"""Interrupt: the agent, or the application, has ended the drain."""

from __future__ import annotations

from spark_drain_store import DrainReport, DrainState

from spark_drain_operator.applications.protocol import Application
from spark_drain_operator.clock import format_time, later
from spark_drain_operator.engine.outcome import DONE, Ended, Outcome
from spark_drain_operator.engine.status import Ending
from spark_drain_operator.kinds.drain.interrupts.withdraw import superseded
from spark_drain_operator.kinds.drain.limits import limits_of
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ENDED_TOO_EARLY, GAVE_UP_TOO_EARLY, ConditionType, Phase, Reason, message_of
from spark_drain_operator.kinds.drain.spec import DrainSpec
from spark_drain_operator.kinds.drain.status import DrainStatus
from spark_drain_operator.kinds.drain.steps import find_run

__all__ = ["decide", "run"]

_CLOCKS_DIFFER_SECONDS = 10


def decide(
    spec: DrainSpec,
    status: DrainStatus,
    application: Application | None,
    report: DrainReport | None,
    *,
    unreadable: bool = False,
    malformed: bool = False,
    not_running: Ending | None = None,
) -> Ending | None:
    """Return how the drain has ended, or None while it goes on.

    Parameters
    ----------
    spec, status, application, report
        What is known.
    unreadable
        Whether nobody knows about the application.
    malformed
        Whether there is a report that cannot be read.
    not_running
        How a drain ends that was created for such an application, where spec.ifNotRunning is Succeed.
    """
    if status.conditions.is_true(ConditionType.EXECUTORS_DRAINED):
        return None  # whatever is reported after that
    if status.application_uid and not unreadable and (application is None or application.uid != status.application_uid):
        ref = spec.application
        return Ending(Phase.ABANDONED, Reason.APPLICATION_GONE, message_of(Reason.APPLICATION_GONE, kind=ref.kind, name=ref.name))
    if status.forced:
        return None
    over = application is not None and application.will_not_run
    if report is None:
        # An agent had answered, or has written what cannot be read: nobody else says that the drain was interrupted.
        lost = over and (malformed or status.answered)
        return _interrupted(application) if lost else None
    if report.state is DrainState.REJECTED:
        return Ending(Phase.REJECTED, report.reason or Phase.REJECTED, report.message or "the agent rejected the drain")
    if report.state is DrainState.FAILED:
        if report.reason in (Reason.DEADLINE_EXCEEDED, Reason.BATCH_STILL_RUNNING):
            return _given_up(spec, status, report)
        return Ending(Phase.FAILED, report.reason or Phase.FAILED, report.message or "the agent could not carry out the drain")
    if report.state is DrainState.WITHDRAWN:
        # The wish may have been told to the agent, and the status that names it not have been written.
        wish = status.wish or superseded(spec, status.next_run_id, committed=False)
        return wish or Ending(Phase.CANCELLED, Reason.WITHDRAWN, message_of(Reason.WITHDRAWN))
    if not over or report.state is DrainState.DRAINED:
        return None
    if report.state.forward_only or status.conditions.is_true(ConditionType.SOURCES_STOPPED):
        return _interrupted(application)
    return (
        status.wish
        or not_running
        or Ending(Phase.FAILED, Reason.APPLICATION_ENDED, ENDED_TOO_EARLY.format(state=application.state if application else "none"))
    )


def _given_up(spec: DrainSpec, status: DrainStatus, report: DrainReport) -> Ending | None:
    """Return how a drain ends whose agent has given up at the deadline; nothing is stopped by force before that of the operator's clock.

    A wish from before the deadline stays, however late the agent answers it.
    """
    if status.wish is not None and status.wish.phase is not Phase.TIMED_OUT:
        return status.wish
    message = report.message or "the agent gave up at the deadline"
    deadline = limits_of(spec, status, None, report).deadline
    if not spec.stops_by_force or deadline is None:
        return Ending(Phase.TIMED_OUT, report.reason, message)
    if status.now >= deadline:
        return Ending(Phase.FORCE_STOPPED, report.reason, message)
    if later(status.now, _CLOCKS_DIFFER_SECONDS) >= deadline:
        return None  # it comes
    early = GAVE_UP_TOO_EARLY.format(message=message, gave_up=format_time(report.updated_at), deadline=format_time(deadline))
    return Ending(Phase.TIMED_OUT, report.reason, early)


def _interrupted(application: Application | None) -> Ending:
    state = application.state if application is not None else "none"
    return Ending(Phase.FAILED, Reason.APPLICATION_ENDED, message_of(Reason.APPLICATION_ENDED, state=state))


def run(drain: DrainPass) -> Outcome:
    """End the drain as the agent says; a forced stop goes on to the step that does it."""
    ending = decide(
        drain.spec,
        drain.status,
        drain.application,
        drain.report,
        unreadable=bool(drain.unreadable),
        malformed=drain.malformed,
        not_running=find_run.not_running(drain) if drain.spec.if_not_running == "Succeed" else None,
    )
    if ending is None:
        return DONE
    drain.needs_fresh_reads()
    if ending.phase is Phase.FORCE_STOPPED:
        drain.status.withdrawal, drain.status.withdrawal_time = ending, drain.now
        return DONE
    return Ended(ending)
