"""Passwords, and what is left of a text without them."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["redacted", "redacted_folder", "redacted_place", "redacted_start"]

_REDACTED = "*********(redacted)"
_LONGEST_SECRET = 2000
_OF_AN_AUTHORITY = re.compile(r"(://[^/\s:@]*:|://[^/\s:@]+@[^/\s:]+:(?!\d{1,5}\b))[^/\s]+(?=@)")
_SECRETS = (
    re.compile(
        r"""(?i)((?:password|passwd|passphrase|(?<![a-z])(?:pwd|pass(?=\s*=))|secret|(?:access|account|encryption|api|private)[._-]?key|signature"""
        r"""|(?<=[?&;])(?:token|sig|key(?==\S{16}))\b|\btoken(?==\S{16})|(?<=["'])token(?=\\{0,8}["']\s*[=:])|(?<=[a-z0-9][-_])token(?=\s*=)"""
        r"""|(?:auth|access|sas|session|security|bearer|api)[-_. ]?token)"""
        r"""[\w.-]{0,200}(?:\\{0,8}["']?\s*(?:[=:]{1,3}>?|->)\s*|["'],\s*(?=["'])))"""
        r"""(?:\\{1,8}["'](?:(?!\\{1,8}["']).)*(?:\\{1,8}["']|\Z)"""
        r"""|(?:[A-Za-z_]\w{0,30}\(|b)?(?:"{3}(?s:(?!"{3}).)*(?:"{3}|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)|'(?:[^'\\]|\\.|'')*(?:'|\Z))|\{[^}]*\}"""
        r"""|(?:[^\s"',;&)]|[,&](?![\s,;&)]|[\w.-]+\s*[=:]|$)|[)"'](?![\s,;&)\]}.:]|$))+)"""
    ),
    re.compile(r"""(?i)(--[\w-]{0,60}(?:password|secret|token)\s+)[^\s"',;&)=]+"""),
    re.compile(
        r"""(?i)(\bauthorization\\{0,8}["']?\s*[=:,]\s*\\{0,8}["']?(?:basic|bearer|digest|token|apikey)\s+|\bbearer\s+(?=[\w.~+/-]{16}))[^\s"',;\\]+"""
    ),
    re.compile(r"""(?i)(\bidentified\s+by\s+(?:password\s+)?)(?:"[^"]*(?:"|\Z)|'(?:[^']|'')*(?:'|\Z)|[^\s"';]+)"""),
    re.compile(r"""(?i)(\bpassword\s+)'(?:[^']|'')*(?:'|\Z)"""),
    re.compile(r"""(?s)(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)(?:(?!-----END ).)+"""),
    re.compile(
        r"""(?i)(<(?:[\w.:-]{0,60}(?:password|passphrase|secret)[\w.-]{0,20}(?:\s[^<>]{0,100})?"""
        r"""|name>[^<]{0,100}(?:password|secret)[^<]{0,100}</name>\s*<value)>\s*)(?:<!\[CDATA\[(?s:(?!\]\]>).)*(?:\]\]>|\Z)|[^<]+)"""
    ),
    _OF_AN_AUTHORITY,
    re.compile(r"""(://[^/\s:@]+:)(?!\d{1,5}(?:[/?#\s]|$)|\*)[^\s"'|]{1,300}(?=@)"""),
    re.compile(r"""(:thin:[^/\s@]{1,100}/)[^\s@]{1,100}(?=@)"""),
    re.compile(r"""((?<![\w/:.@-])[\w.-]+:)[^\s/:@"'*][^\s@"'*]{0,300}(?=@(?![0-9a-f]{4,8}\b)[\w.-])"""),
)
"""What comes before a secret, and the secret, as Spark's own redaction finds them."""
_ADDRESS = re.compile(r"[\w.+:-]*/[^?;&,\s]*")
"""What of a place is a path; parameters may follow."""


def redacted(text: str) -> str:
    """Return a text without the passwords in it: messages go where more people read than in a driver's log."""
    return _without(_SECRETS, text)


def redacted_start(text: str, limit: int) -> str:
    """Return the beginning of a text, so many characters, without passwords; looking through all of a long one would take time."""
    begun = redacted(text[: limit + _LONGEST_SECRET])
    if len(text) > limit + _LONGEST_SECRET:
        if not begun.endswith(_REDACTED):  # it may end in a password, without what tells that it is one
            begun = begun[: max(begun.rfind(" "), len(begun) - _LONGEST_SECRET, 0)]
        begun += "…"
    return begun if len(begun) <= limit else f"{begun[: max(limit, 1) - 1]}…"


def redacted_folder(path: str) -> str:
    """Return the path of a folder without the password of its authority; a folder may well be called ``secret=1``, as partitions are."""
    return _without([_OF_AN_AUTHORITY], path)


def redacted_place(place: str) -> str:
    """Return an address, which may be that of a folder, without the passwords in it."""
    place = redacted_folder(place)
    address = _ADDRESS.match(place)
    end = address.end() if address else 0
    return place[:end] + redacted(place[end:])


def _without(secrets: Iterable[re.Pattern[str]], text: str) -> str:
    for pattern in secrets:
        text = pattern.sub(rf"\1{_REDACTED}", text)
    return text
