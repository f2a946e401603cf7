"""Confs of the application that are durations: read, and held to their bounds, in one place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from spark_drain_agent.milestones import LOG

__all__ = ["DURATIONS", "LEASE", "START", "DurationConf", "DurationError", "wrong_durations"]

_WRITTEN = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*", re.IGNORECASE)
_SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}


class DurationError(ValueError):
    """A value is no duration, or out of bounds; the message names the conf, the value and what it may be."""


@dataclass(frozen=True)
class DurationConf:
    """A conf whose value is a duration.

    Parameters
    ----------
    name
        The conf.
    default
        In seconds, as the others.
    least, most
        What it may be.
    """

    name: str
    default: float
    least: float
    most: float

    def read(self, session_conf: Callable[[str, str], str]) -> float:
        """Return the seconds that a session has; raises `DurationError`."""
        value = session_conf(self.name, "")
        if not value.strip():
            return self.default
        seconds = _parsed(value)
        if seconds is None or not self.least <= seconds <= self.most:
            raise DurationError(
                f"{self.name} is {value!r}, and may be {self.least:g} to {self.most:g} s: a number of seconds, or one with a unit, "
                f"as in '15s', '1500ms', '2 min' or '1h'; the default is {self.default:g} s"
            )
        return seconds

    def read_or_default(self, session_conf: Callable[[str, str], str]) -> float:
        """Return the seconds that a session has, or with a warning the default, where a value that is wrong must not stop anything."""
        try:
            return self.read(session_conf)
        except DurationError as error:
            _warn(f"{error}, which is used instead; drains of this application are rejected until that is put right")
            return self.default

    def within(self, seconds: float) -> float:
        """Return the number of seconds, or the bound that it is beyond."""
        if seconds < self.least:
            return self.least
        return seconds if seconds <= self.most else self.most  # which is also what becomes of NaN


def _parsed(value: str) -> float | None:
    written = _WRITTEN.fullmatch(value)
    unit = _SECONDS.get(written[2].lower()) if written else None
    return float(written[1]) * unit if written and unit else None


@cache
def _warn(message: str) -> None:
    LOG.warning("%s", message)


LEASE = DurationConf("spark.sparkdrain.leaseSeconds", default=15, least=1, most=600)
"""After how long without a change this driver's leases on checkpoints are void."""

START = DurationConf("spark.sparkdrain.startSeconds", default=30, least=1, most=3600)
"""How long it may take from one start to the next; a query that starts later still is not in the drain."""

DURATIONS = (LEASE, START)


def wrong_durations(session_conf: Callable[[str, str], str]) -> list[str]:
    """Return for each conf that a session has wrong what is wrong with it."""
    wrong = []
    for conf in DURATIONS:
        try:
            conf.read(session_conf)
        except DurationError as error:
            wrong.append(str(error))
    return wrong
