"""Step: every executor has reported, and the cluster agrees with the report."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import accumulate

from spark_drain_store import MOST_EXECUTOR_EXCEPTIONS, DrainReport, DrainState, ExecutorState
from spark_drain_store.ranges import is_executor_id, parse_ranges

from spark_drain_operator.applications.protocol import Application
from spark_drain_operator.engine.outcome import Noted, Outcome, Waiting, ended
from spark_drain_operator.kinds.drain.observation import DrainPass
from spark_drain_operator.kinds.drain.reasons import ConditionType, Phase, Reason, message_of

__all__ = ["Driver", "confirm_driver", "objection", "run", "strangers", "unaccounted"]

_RECHECK_SECONDS = 5.0
_SHOWN = 10


class Driver(Enum):
    """What is known of the driver that reported."""

    CONFIRMED = "confirmed"
    """It is the live one."""
    GONE = "gone"
    """No driver is alive, and none will come by itself."""
    OTHER = "other"
    """Another one is alive, or on its way: its agent will report."""


def confirm_driver(application: Application | None, report: DrainReport) -> tuple[Driver, str]:
    """Compare the final report's author with the live driver; the text says what is wrong."""
    if application is None or application.will_not_run:
        return Driver.GONE, ""
    driver = application.serving_driver
    if driver is None:
        return Driver.OTHER, f"no driver is running (application state {application.state}); waiting for the report of the next one"
    if not report.driver_pod_uid:
        return Driver.OTHER, (
            "it does not say which pod wrote it; mount a service account token into the driver, or set SPARK_DRAIN_POD_UID through the "
            "downward API"
        )
    run_id = report.runs[-1] if report.runs else ""
    if driver.uid != report.driver_pod_uid or driver.run_id != run_id:
        return Driver.OTHER, (
            f"it is from run {run_id or 'unknown'}, pod uid {report.driver_pod_uid}; running is {driver.run_id}, pod uid {driver.uid}; "
            "waiting for its report"
        )
    return Driver.CONFIRMED, ""


def strangers(report: DrainReport, live: Iterable[str]) -> list[str]:
    """Return the live executors that the report does not name as drained, or as excepted for another reason than their silence."""
    drained = sorted(parse_ranges(report.executors_drained))
    excepted = {exception.id for exception in report.executor_exceptions if exception.state != ExecutorState.SILENT}
    starts = [first for first, _ in drained]
    reach = list(accumulate((last for _, last in drained), max))
    found = []
    for executor in live:
        before = bisect_right(starts, int(executor)) if is_executor_id(executor) else 0
        if executor not in excepted and not (before > 0 and int(executor) <= reach[before - 1]):
            found.append(executor)
    return sorted(found, key=lambda text: (len(text), text))


def unaccounted(report: DrainReport, live: Iterable[str]) -> list[str]:
    """Return the live executors that may have had tasks and that the report does not account for.

    A report that accounts for every executor of the last commit leaves only those that joined later: they have had no task of any query,
    and are idle. Where its list of exceptions may be cut, those with an id above every reported one, since ids grow.
    """
    drained = parse_ranges(report.executors_drained)
    excepted = {exception.id for exception in report.executor_exceptions if exception.state != ExecutorState.SILENT}
    complete = report.executors_expected <= _count(drained) + len(excepted)
    cut = len(report.executor_exceptions) >= MOST_EXECUTOR_EXCEPTIONS
    silent = {exception.id for exception in report.executor_exceptions} - excepted
    highest = max(
        [last for _, last in drained] + [int(item.id) for item in report.executor_exceptions if is_executor_id(item.id)],
        default=-1,
    )

    def newer(executor: str) -> bool:
        return is_executor_id(executor) and complete and executor not in silent and (not cut or int(executor) > highest)

    return [executor for executor in strangers(report, live) if not newer(executor)]


def _shown(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_SHOWN]) + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else "")


def _count(ranges: list[tuple[int, int]]) -> int:
    return sum(last - first + 1 for first, last in ranges)


def objection(drain: DrainPass, report: DrainReport) -> tuple[tuple[Reason, str] | None, list[str]]:
    """Return why the cluster does not agree with a final report, None where it does; and the executors that no node has started yet."""
    author, detail = confirm_driver(drain.application, report)
    if author is Driver.OTHER:
        return (Reason.DRIVER_UNCONFIRMED, message_of(Reason.DRIVER_UNCONFIRMED, detail=detail)), []
    if author is Driver.GONE:
        drain.needs_fresh_reads()
        return None, []
    run_id = report.runs[-1]
    pods = drain.adapter.alive(drain.namespace, run_id)
    if not any(pod.uid == report.driver_pod_uid and not pod.terminating for pod in pods):
        drain.needs_fresh_reads()
    drivers = {driver.uid for driver in drain.application.drivers} if drain.application is not None else set()
    unknown = strangers(report, [pod.executor_id for pod in pods if pod.uid not in drivers])
    # Asked a second time only for those that the report does not name.
    running = {pod.executor_id for pod in drain.adapter.running_executors(drain.namespace, run_id)} if unknown else set()
    missing = unaccounted(report, running)
    if missing:
        return (Reason.EXECUTORS_UNACCOUNTED, message_of(Reason.EXECUTORS_UNACCOUNTED, executors=_shown(missing))), []
    return None, [executor for executor in unknown if executor not in running]


def run(drain: DrainPass) -> Outcome:
    """Cross-check the final report with the pods, once.

    Nothing follows before the status says so: whatever fails then, the drain is complete, and a deleted application no abandoned one.
    """
    report, status, application = drain.report, drain.status, drain.application
    assert report is not None
    if report.state is not DrainState.DRAINED:
        message = report.message or f"{status.progress.get('executors', '0/0')} executors have reported"
        status.set(ConditionType.EXECUTORS_DRAINED, "False", Reason.IN_PROGRESS, message)
        return Waiting(drain.settings.resync_seconds, message, drain.unhurried)
    found, pending = objection(drain, report)
    if found is not None:
        reason, message = found
        status.set(ConditionType.EXECUTORS_DRAINED, "False", reason, message)
        return Waiting(_RECHECK_SECONDS, message)
    author, _ = confirm_driver(application, report)
    if author is Driver.GONE and status.seen_run_id not in ("", *report.runs):
        state = application.state if application is not None else "none"  # nobody knows what the driver that was seen after it has done
        return ended(Phase.FAILED, Reason.APPLICATION_ENDED, message_of(Reason.APPLICATION_ENDED, state=state))
    message = f"{status.progress.get('executors', '0/0')} executors reported drained, every running one included"
    if pending:
        message += f"; never started, so idle: {_shown(pending)}"
    status.set(ConditionType.EXECUTORS_DRAINED, "True", Reason.COMPLETED, message)
    return Noted("drained; the result is kept next, then the application is scaled down")
