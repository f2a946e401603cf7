"""Which notification concerns this run, and how: the run-id rules as one pure function (table-tested)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from spark_drain_store import DrainNotification, DrainReport

__all__ = ["Assignment", "Decision", "decide"]


class Assignment(Enum):
    """What a notification means to this run, as its log says it."""

    FRESH = "a new request, whose queries are planned"
    """Nobody has passed the point of no return: plan and drain from the start."""
    FORWARD = "past the point of no return in an earlier run: no query starts again until it is finished"
    """An earlier run passed the point of no return: no query may start again, each is finished from its journal."""


@dataclass(frozen=True)
class Decision:
    """The drain that this run has to work on."""

    notification: DrainNotification
    report: DrainReport | None
    assignment: Assignment


def decide(
    run_id: str,
    notifications: Mapping[str, DrainNotification],
    reports: Mapping[str, DrainReport],
    journalled: Collection[str] = (),
) -> Decision | None:
    """Return what this run has to do, or None.

    Parameters
    ----------
    run_id
        ``spark.app.id`` of this run.
    notifications, reports
        By drain id, notifications oldest first.
    journalled
        Drains that a checkpoint's journal knows of and that are not undone.

    Notes
    -----
    A notification of another run that was never acknowledged, and of which no journal knows, is stale: it was meant for a run that
    is gone (Samza invalidates by run id in the same way). An acknowledged one belongs to the application and is inherited.
    """
    for drain_id, notification in notifications.items():
        report = reports.get(drain_id)
        if report is not None and report.state.given_up:
            continue
        acknowledged = report is not None and bool(report.runs)
        if not (acknowledged or notification.run_id in (None, run_id) or drain_id in journalled):
            continue
        beyond = drain_id in journalled or (report is not None and report.state.forward_only)
        return Decision(notification, report, Assignment.FORWARD if beyond else Assignment.FRESH)
    return None
