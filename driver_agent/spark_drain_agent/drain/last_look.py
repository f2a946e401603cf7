"""The last look at the metadata store before the point of no return."""

from __future__ import annotations

import time
from collections.abc import Callable

from spark_drain_store import Channel, DrainNotification, StoreError

from spark_drain_agent.clock import monotonic
from spark_drain_agent.drain.request import Request
from spark_drain_agent.milestones import LOG

__all__ = ["StoreAwayError", "look_again", "wait_for_store"]

_PATIENCE_SECONDS = 60.0
_RETRY_SECONDS = 1.0


class StoreAwayError(Exception):
    """The store cannot be read, so nobody knows whether the drain is still wanted."""


def look_again(channel: Channel, request: Request, keep_waiting: Callable[[], None]) -> None:
    """Bring the request up to date; raises what ``keep_waiting`` raises, or `StoreAwayError`."""
    give_up = monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            text = channel.requests.read().entries.get(request.drain_id)
            break
        except StoreError as error:
            keep_waiting()
            if monotonic() > give_up:
                raise StoreAwayError from error
            time.sleep(_RETRY_SECONDS)
    try:
        request.update(None if text is None else DrainNotification.from_json(request.drain_id, text))
    except ValueError as error:
        LOG.warning("drain %s: its notification became unreadable; the last readable one counts: %s", request.drain_id, error)
    keep_waiting()


def wait_for_store(channel: Channel, request: Request) -> None:
    """Wait until the store can be read, while the drain is wanted."""
    while True:
        try:
            channel.requests.read()
            return
        except StoreError:
            request.keep_waiting()
            time.sleep(_RETRY_SECONDS)
