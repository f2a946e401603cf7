"""What of a text, or of a name, belongs to one run: ids, addresses of objects, credentials."""

from __future__ import annotations

import hashlib
import re

__all__ = ["is_secret", "without_addresses", "without_fetch_ids", "without_ids"]

_FETCHED = re.compile(r"(?:(?<=/)|^)(pyspark|spark|spark-upload|userFiles)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=/|$)")
"""A folder to which Spark has fetched the application."""
_ADDRESS = re.compile("(?<= at )0x[0-9a-f]+")
"""Of an object, in its text."""
_ID = re.compile("(?<![0-9a-f])[0-9a-f]{8}(-?)[0-9a-f]{4}\\1[0-9a-f]{4}\\1[0-9a-f]{4}\\1[0-9a-f]{12}(?![0-9a-f])|" + _ADDRESS.pattern)
"""Also without dashes, but nothing longer: a digest by SHA tells versions apart."""
_SECRET = re.compile(
    r"(?i:secret|passw|passphrase|(?<![a-z])(?:pass|pwd)(?![a-z])|tokens?(?![a-z])|credential|auth[._-]?params"
    r"|(?:access|account|api|private|keystore|shared)[._-]?key(?![a-z]))|(?<=[a-z])P(?:ass|wd)(?![a-z])"
)
"""Of names as connectors have them, the last of them in camel case."""
_LONGEST = 2**20


def without_fetch_ids(text: str) -> str:
    """Return a text without the ids of folders to which Spark has fetched the application, which each run has anew.

    Of a text of more than a million characters, its digest as it is: to look for ids would take seconds.
    """
    return _FETCHED.sub(r"\1", text) if len(text) <= _LONGEST else _digest(text)


def without_addresses(text: str) -> str:
    """Return a text as `without_fetch_ids` does, and without addresses of objects."""
    return _ADDRESS.sub("", without_fetch_ids(text))


def without_ids(text: str) -> str:
    """Return a text without any UUID, and without addresses of objects; of a very long one, its digest as it is."""
    return _ID.sub("", text) if len(text) <= _LONGEST else _digest(text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_secret(name: str) -> bool:
    """Return whether an option or a variable of this name holds a credential, which may be another one at each start."""
    return _SECRET.search(name) is not None
