"""Times as the API writes them: UTC, whole seconds, by the API server's clock."""

from __future__ import annotations

import logging
import time as machine
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

__all__ = ["SERVER", "ServerClock", "exactly_now", "format_time", "later", "now", "parse_time", "read_time"]

_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_NEGLIGIBLE_SECONDS = 1.0

_log = logging.getLogger(__name__)


class ServerClock:
    """How far the API server's clock, which stamps what it stores, is ahead of this machine's.

    An answer's Date has whole seconds, and was written at some time between question and answer: each answer says between which bounds
    the difference is. It is left as it is while it is between them, and moves no farther than to the nearest.
    """

    def __init__(self) -> None:
        self.ahead = 0.0
        """Seconds; 0 while the two agree."""

    def tell(self, date: str, asked: float, answered: float) -> None:
        """Take note of an answer; see `spark_drain_store.kube_client.KubeClient.dated`."""
        try:
            server = parsedate_to_datetime(date).timestamp()
        except (ValueError, TypeError, OverflowError):
            return
        least, most = server - answered, server + 1.0 - asked
        if least - _NEGLIGIBLE_SECONDS <= self.ahead <= most + _NEGLIGIBLE_SECONDS or least > most:
            return
        self.ahead = min(max(self.ahead, least), most)
        _log.warning("the API server's clock is %+.0f s from this machine's: its times are what counts", self.ahead)


SERVER = ServerClock()
"""Of the API server that the operator talks to."""


def now() -> datetime:
    """Return the present time in UTC, whole seconds, so that a time survives being written and read."""
    return exactly_now().replace(microsecond=0)


def exactly_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.fromtimestamp(machine.time() + SERVER.ahead, UTC)


def format_time(time: datetime) -> str:
    """Return RFC 3339 in UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    """Read RFC 3339; raises ValueError for another form, and for a time outside the years 1 to 9999 in UTC."""
    time = datetime.fromisoformat(text.upper())  # RFC 3339 allows "t" and "z", ISO 8601 does not
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC") from error


def read_time(text: str | None) -> datetime | None:
    """Read a time of a status; None where there is none, or somebody has written what no time is."""
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None


def later(time: datetime, seconds: float) -> datetime:
    """Return the time that many seconds later, at most the end of the year 9999."""
    return min(time, _LAST - timedelta(seconds=seconds)) + timedelta(seconds=seconds)
