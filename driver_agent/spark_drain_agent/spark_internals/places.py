"""Where a query writes to or reads from, and whether the one is the other. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """Where a query writes to or reads from.

    Parameters
    ----------
    kind
        ``path``, ``table`` or ``topic``.
    name
        URI of a folder, full name of a table, or a topic; where a query reads, a path may be a glob and a topic a regular expression.
    servers
        Bootstrap servers of a topic.
    pattern
        Whether ``name`` is a regular expression.
    """

    kind: str
    name: str
    servers: frozenset[str] = frozenset()
    pattern: bool = False

    def is_read_as(self, source: Place) -> bool:
        """Return whether what is written here is read there."""
        if self.kind != source.kind:
            return False
        if self.kind == "path":
            return any(_reads(self.name, glob) for glob in _alternatives(source.name))
        if self.kind == "table":
            return self.name.lower() == source.name.lower()
        if not self.servers & source.servers:
            return False
        return bool(re.fullmatch(source.name, self.name)) if source.pattern else self.name == source.name


def _alternatives(glob: str) -> list[str]:
    """Return a Hadoop glob without its innermost braces, one for each choice."""
    found = re.search(r"\{([^{}]*)\}", glob)
    if found is None:
        return [glob]
    return [name for choice in found[1].split(",") for name in _alternatives(glob[: found.start()] + choice + glob[found.end() :])]


def _reads(folder: str, glob: str) -> bool:
    """Return whether a glob is the folder, or lies below it: a partition, or its files."""
    written, read = folder.rstrip("/").split("/"), glob.rstrip("/").split("/")
    return len(read) >= len(written) and all(fnmatchcase(*pair) for pair in zip(written, read, strict=False))
