"""Words of requests, of agents and of the API server, as one line of a log or terminal."""

from __future__ import annotations

__all__ = ["one_line"]

_ESCAPES = {code: chr(code).encode("unicode_escape").decode() for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)}


def one_line(text: str) -> str:
    """Return a text with its control characters escaped."""
    return text.translate(_ESCAPES)
