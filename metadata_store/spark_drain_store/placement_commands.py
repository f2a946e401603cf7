"""``placement write|show|withdraw|delete``: SEP-22's place-container for one executor of Spark."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime, timedelta
from typing import Any

from spark_drain_store.channel import Channel
from spark_drain_store.options import UnsupportedOptionError, named_values
from spark_drain_store.placement_messages import (
    DEFAULT_EXPIRY_SECONDS,
    MAX_EXPIRY_SECONDS,
    Destination,
    UnsupportedDestinationError,
)
from spark_drain_store.placements import (
    Placements,
    delete_all_placements,
    delete_placement,
    read_placement_response,
    withdraw_placement,
    write_placement_request,
)
from spark_drain_store.protocol import StoreError

__all__ = ["add_placement_verbs", "run_placement_verb"]


def add_placement_verbs(parser: ArgumentParser) -> None:
    """Say which verbs and options the topic has."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    write = verbs.add_parser("write", help="request that one executor is moved or restarted; prints the uuid of the request")
    write.add_argument("--processor-id", required=True, metavar="ID", help="the executor, by Spark's id, such as 4")
    write.add_argument(
        "--destination-host", default="", metavar="HOST", help=f"name of a node, or {', '.join(Destination)}; not with --node-selector"
    )
    write.add_argument(
        "--node-selector", action="append", default=[], metavar="LABEL=VALUE", help="labels that the node must have; repeatable"
    )
    write.add_argument("--deployment-id", metavar="RUN", help="only this run (spark.app.id); default: the run that sees it first")
    write.add_argument(
        "--request-expiry",
        type=int,
        metavar="SECONDS",
        help=f"how long the new executor may take to be there; default {DEFAULT_EXPIRY_SECONDS}",
    )
    write.add_argument(
        "--decommission-after",
        type=int,
        metavar="SECONDS",
        help="from now on, when the executor is ended even if no new one is there; default: never",
    )
    show = verbs.add_parser("show", help="print requests and responses as JSON")
    show.add_argument("placement_id", nargs="?", metavar="UUID", help="only this one")
    withdraw = verbs.add_parser("withdraw", help="ask for a placement not to be carried out, as long as the old executor is there")
    withdraw.add_argument("placement_id", metavar="UUID")
    delete = verbs.add_parser("delete", help="remove a request and its response")
    which = delete.add_mutually_exclusive_group(required=True)
    which.add_argument("placement_id", nargs="?", metavar="UUID")
    which.add_argument("--all", action="store_true", help="all of the application")


def run_placement_verb(channel: Channel, options: Namespace) -> None:
    """Run one verb.

    Raises
    ------
    StoreError
        The store does not answer, or there is no such placement.
    UnsupportedDestinationError, UnsupportedOptionError
        The request is refused.
    """
    if options.verb == "write":
        print(_write(channel, options))
        return
    placements = Placements.read(channel)
    known = {*placements.requests, *placements.responses, *placements.malformed}
    if options.placement_id is not None and options.placement_id not in known:
        raise StoreError(f"there is no placement {options.placement_id!r}: `placement show` lists them")
    if not known:
        print(f"note: there are no placements in {options.metadata_store}", file=sys.stderr)
    if options.verb == "show":
        print(json.dumps(_shown(placements, options.placement_id), indent=2))
    elif options.verb == "withdraw":
        withdraw_placement(channel, options.placement_id)
        _note_too_late(channel, options.placement_id)
    elif options.all:
        print(json.dumps({"removed": delete_all_placements(channel)}))
    else:
        delete_placement(channel, options.placement_id)
        print(json.dumps({"removed": [options.placement_id]}))


def _note_too_late(channel: Channel, placement_id: str) -> None:
    response = read_placement_response(channel, placement_id)
    if response is not None and response.status.finished:
        print(
            f"note: placement {placement_id} has ended (statusCode {response.status}) and is not withdrawn any more: "
            "`placement delete` removes it",
            file=sys.stderr,
        )


def _write(channel: Channel, options: Namespace) -> str:
    if not options.destination_host and not options.node_selector:
        raise UnsupportedDestinationError("give --destination-host or --node-selector: where should the executor run?")
    after = options.decommission_after
    if after is not None and not 0 <= after <= MAX_EXPIRY_SECONDS:
        raise UnsupportedOptionError(f"--decommission-after must be 0 to {MAX_EXPIRY_SECONDS} seconds, not {after}")
    return write_placement_request(
        channel,
        options.processor_id,
        options.destination_host,
        run_id=options.deployment_id,
        node_selector=named_values("--node-selector", options.node_selector, "LABEL=VALUE"),
        expiry_seconds=options.request_expiry,
        decommission_at=None if after is None else datetime.now(UTC) + timedelta(seconds=after),
    )


def _shown(placements: Placements, only: str | None) -> dict[str, Any]:
    rows = []
    for placement_id in dict.fromkeys([*placements.requests, *placements.responses]):
        if only in (None, placement_id):
            request, response = placements.requests.get(placement_id), placements.responses.get(placement_id)
            row: dict[str, Any] = {"uuid": placement_id, "statusCode": placements.status(placement_id)}
            for message in (request, response):
                row |= {} if message is None else {key: value for key, value in json.loads(message.to_json()).items() if key != "version"}
            rows.append(row)
    result: dict[str, Any] = {"placements": rows}
    malformed = [sentence for key, sentence in placements.malformed.items() if only in (None, key)]
    return result | ({"malformed": malformed} if malformed else {})
