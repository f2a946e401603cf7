"""``drain write|show|approve|withdraw|cleanup``: Samza's DrainUtils for people and scripts."""

from __future__ import annotations

import json
import sys
import uuid
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from spark_drain_store.channel import Channel
from spark_drain_store.drains import Drains, approve_notification, withdraw_notification, write_notification
from spark_drain_store.messages import DrainNotification, DrainState
from spark_drain_store.options import MODES, DrainOptions, named_values
from spark_drain_store.protocol import StoreError

__all__ = ["add_drain_verbs", "run_drain_verb", "shown"]

_NO_REPORT = "no report of it can be read: no agent has answered yet, or its report was removed or is malformed"


def add_drain_verbs(parser: ArgumentParser) -> None:
    """Say which verbs and options the topic has."""
    drain = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    write = drain.add_parser("write", help="request a drain; prints its uuid")
    write.add_argument("--run-id", help="only this run (spark.app.id); default: the run that sees it first")
    write.add_argument("--mode", default="Drain", help=f"one of {', '.join(MODES)}; default Drain")
    write.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="for example checkpoint.policy=Reseed; repeatable"
    )
    drain.add_parser("show", help="print all drains as JSON")
    approve = drain.add_parser("approve", help="carry out the plan of a drain with execution=AfterApproval")
    approve.add_argument("drain_id", metavar="UUID")
    withdraw = drain.add_parser("withdraw", help="ask for a drain to be undone, as long as it can be")
    withdraw.add_argument("drain_id", metavar="UUID")
    cleanup = drain.add_parser("cleanup", help="remove finished drains; this lets a drained application end")
    cleanup.add_argument("--all", action="store_true", help="remove unfinished ones too")


def run_drain_verb(channel: Channel, options: Namespace) -> None:
    """Run one verb.

    Raises
    ------
    StoreError
        The store does not answer, or there is no such drain.
    DrainAlreadyActiveError, UnsupportedOptionError
        The request is refused.
    """
    if options.verb != "write" and not (channel.requests.read().entries or channel.reports.read().entries):
        print(f"note: there are no drains in {options.metadata_store}", file=sys.stderr)
    if options.verb == "write":
        print(_write(channel, options.run_id, options.mode, options.option))
    elif options.verb == "show":
        print(json.dumps(shown(Drains.read(channel)), indent=2))
    elif options.verb in ("approve", "withdraw"):
        change = approve_notification if options.verb == "approve" else withdraw_notification
        if change(channel, options.drain_id) is None:
            raise StoreError(f"there is no drain {options.drain_id!r}: `drain show` lists them")
        _note_too_late(channel, options.drain_id, "withdrawn" if options.verb == "withdraw" else "carried out")
    else:
        print(json.dumps({"removed": _cleanup(channel, everything=options.all)}))
        _note_what_stays(channel)


def _note_too_late(channel: Channel, drain_id: str, asked: str) -> None:
    report = Drains.read(channel).reports.get(drain_id)
    if report is None:
        return
    if report.state.finished:
        said = f"has ended (state {report.state}) and is not {asked} any more: `drain cleanup` removes it"
    elif report.state.beyond_return and asked == "withdrawn":
        said = (
            f"is past its point of no return (state {report.state}) and is not withdrawn any more: where no driver "
            "runs, the next start of the same version finishes it; then `drain cleanup` removes it"
        )
    else:
        return
    print(f"note: drain {drain_id} {said}", file=sys.stderr)


def _note_what_stays(channel: Channel) -> None:
    drains = Drains.read(channel)
    active = drains.active()
    if active is not None:
        report = drains.reports.get(active.drain_id)
        state = "Requested" if report is None else report.state
        withdraw = "" if report is not None and report.state.forward_only else ", or end it with `drain withdraw`"
        print(
            f"note: drain {active.drain_id} has not ended (state {state}) and stays: "
            f"give `drain cleanup` again when `drain show` says that it has{withdraw}; `--all` removes it now",
            file=sys.stderr,
        )


def _write(channel: Channel, run_id: str | None, mode: str, pairs: Sequence[str]) -> str:
    if run_id is not None and not run_id.strip():
        raise StoreError(f"--run-id {run_id!r} must be the id of a run (spark.app.id): leave it out for the run that sees the drain first")
    options = named_values("--option", pairs)
    DrainOptions.parse(mode, options)
    notification = DrainNotification(drain_id=str(uuid.uuid4()), created_at=datetime.now(UTC), run_id=run_id, mode=mode, options=options)
    return write_notification(channel, notification).drain_id


def shown(drains: Drains) -> dict[str, Any]:
    """Return the output of ``drain show`` as an object; a public format."""
    rows: list[dict[str, Any]] = []
    for drain_id, notification in drains.notifications.items():
        report = drains.reports.get(drain_id)
        if report is None:
            rows.append(
                {
                    "uuid": drain_id,
                    "runId": notification.run_id,
                    "state": str(DrainState.REQUESTED),
                    "reason": "",
                    "message": "withdrawn; no report of it can be read" if notification.withdrawn else _NO_REPORT,
                    "queries": [],
                }
            )
            continue
        row = report.as_object()
        rows.append({"uuid": drain_id, "runId": report.runs[-1] if report.runs else notification.run_id, "state": str(report.state), **row})
    rows += [
        {"uuid": drain_id, "runId": report.runs[-1] if report.runs else None, "state": str(report.state), **report.as_object()}
        for drain_id, report in drains.reports.items()
        if drain_id not in drains.notifications
    ]
    result: dict[str, Any] = {"drains": rows}
    if drains.malformed:
        result["malformed"] = list(drains.malformed)
    return result


def _cleanup(channel: Channel, *, everything: bool) -> list[str]:
    drains = Drains.read(channel)
    notified, reported = [*drains.notifications], [*drains.reports]
    unreadable = channel.reports.read().entries.keys() - drains.reports.keys()
    if everything:  # also what cannot be read
        notified += channel.requests.read().entries.keys() - drains.notifications.keys()
        reported += unreadable

    def over(drain_id: str) -> bool:
        if drain_id in reported:
            return drains.reports[drain_id].state.finished
        return drains.notifications[drain_id].withdrawn and drain_id not in unreadable  # meant for a run that is gone

    removed = [drain_id for drain_id in dict.fromkeys([*notified, *reported]) if everything or drain_id not in notified or over(drain_id)]
    # Notifications first: a report without its notification is history, a notification without its report would be a new request.
    channel.requests.write({drain_id: None for drain_id in removed if drain_id in notified})
    channel.reports.write({drain_id: None for drain_id in removed if drain_id in reported})
    return removed
