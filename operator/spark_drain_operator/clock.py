"""Times as the API writes them: UTC, whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["format_time", "now", "parse_time"]


def now() -> datetime:
    """Return the present time in UTC, whole seconds, so that a time survives being written and read."""
    return datetime.now(UTC).replace(microsecond=0)


def format_time(time: datetime) -> str:
    """Return RFC 3339 in UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    """Read RFC 3339; raises ValueError for another form."""
    time = datetime.fromisoformat(text)
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
