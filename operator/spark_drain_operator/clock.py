"""Times as the API writes them: UTC, whole seconds, by the API server's clock."""

from __future__ import annotations

import logging
import math
import threading
import time as machine
from collections import deque
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

__all__ = ["SERVER", "ServerClock", "exactly_now", "format_time", "later", "now", "parse_time", "read_time"]

_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_NEGLIGIBLE_SECONDS = 1.0
_ANSWERS, _APART_SECONDS = 31, 1.0
"""How many answers are remembered, and how far apart: a burst of them is of one server."""

_log = logging.getLogger(__name__)


class ServerClock:
    """The API server's clock, which stamps what it stores, as its answers tell it; this machine's until the first one.

    An answer's Date has whole seconds, and was written at some time between question and answer: each answer says between which bounds
    that clock is. It is left as it is while it is between those of the median of the last answers, and moves no farther than to the
    nearest: of several API servers one may be wrong. In between goes this machine's steady clock, which nobody sets.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: deque[tuple[float, float]] = deque(maxlen=_ANSWERS)
        self._last = -math.inf
        self._since = machine.time() - machine.monotonic()

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return machine.monotonic() + self._since

    def tell(self, date: str, asked: float, answered: float) -> None:
        """Take note of an answer, one a second; see `spark_drain_store.kube_client.KubeClient.dated`."""
        try:
            server = parsedate_to_datetime(date).timestamp()
        except (ValueError, TypeError, OverflowError):
            return
        with self._lock:
            if answered < self._last + _APART_SECONDS:
                return
            self._last = answered
            self._answers.append((server - answered, server + 1.0 - asked))
            ordered, middle = sorted(self._answers, key=sum), len(self._answers) // 2
            least, most = ordered[~middle][0], ordered[middle][1]
            if least - _NEGLIGIBLE_SECONDS <= self._since <= most + _NEGLIGIBLE_SECONDS:
                return
            self._since = min(max(self._since, least), most)
        _log.warning("the API server's clock is %+.0f s from this machine's: its times are what counts", self.now() - machine.time())


SERVER = ServerClock()
"""Of the API server that the operator talks to."""


def now() -> datetime:
    """Return the present time in UTC, whole seconds, so that a time survives being written and read."""
    return exactly_now().replace(microsecond=0)


def exactly_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.fromtimestamp(SERVER.now(), UTC)


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
