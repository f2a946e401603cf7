"""Times as the API writes them: UTC, whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["format_time", "later", "now", "parse_time", "read_time"]

_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def now() -> datetime:
    """Return the present time in UTC, whole seconds, so that a time survives being written and read."""
    return datetime.now(UTC).replace(microsecond=0)


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
