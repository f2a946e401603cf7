"""The last look at the metadata store before the point of no return."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from spark_drain_store import Channel, DrainNotification, StoreError

from spark_drain_agent.clock import monotonic
from spark_drain_agent.drain.reporter import Reporter
from spark_drain_agent.drain.request import Request
from spark_drain_agent.milestones import LOG

__all__ = ["StoreAwayError", "look_again", "wait_for_store"]

_PATIENCE_SECONDS = 60.0
_RETRY_SECONDS = 1.0


class StoreAwayError(Exception):
    """The store cannot be read, so nobody knows whether the drain is still wanted, or takes no report, so nobody would know of it."""


def look_again(channel: Channel, request: Request, reporter: Reporter, keep_waiting: Callable[[], None]) -> None:
    """Bring the request up to date, and write a report; raises what ``keep_waiting`` raises, or `StoreAwayError`."""
    give_up = monotonic() + _PATIENCE_SECONDS
    reported = reporter.change()
    while not reported or (found := _entries(channel)) is None:
        keep_waiting()
        if monotonic() > give_up:
            raise StoreAwayError
        time.sleep(_RETRY_SECONDS)
        reported = reporter.retry()
    text = found.get(request.drain_id)
    try:
        request.update(None if text is None else DrainNotification.from_json(request.drain_id, text))
    except ValueError as error:
        LOG.warning("drain %s: its notification became unreadable; the last readable one counts: %s", request.drain_id, error)
    keep_waiting()


def wait_for_store(channel: Channel, request: Request, reporter: Reporter) -> None:
    """Wait until the store can be read and takes reports, while the drain is wanted."""
    while _entries(channel) is None or not reporter.retry():
        request.keep_waiting()
        time.sleep(_RETRY_SECONDS)


def _entries(channel: Channel) -> Mapping[str, str] | None:
    """Return the requests; None where the store does not answer."""
    try:
        return channel.requests.read().entries
    except StoreError:
        return None
