"""Which query of an application feeds which other one, and in what order they are drained. Pure functions over what was observed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

__all__ = ["FEEDS", "CycleError", "Place", "UnknownFeedError", "check_order", "declared_feeds", "detected_feeds", "feeds"]

FEEDS = "spark.sparkdrain.feeds"
"""Conf of the application: ``a>b,b>c`` by the queries' names, or ``none``; replaces what is found in the plans."""


class UnknownFeedError(Exception):
    """The conf cannot be read, or names a query that does not run."""


class CycleError(Exception):
    """Queries feed each other, so none of them can be drained first.

    Parameters
    ----------
    keys
        The queries, in the order in which data flows; the first one is the last one again.
    message
        For people.
    """

    def __init__(self, keys: Sequence[str], message: str = "") -> None:
        super().__init__(message or " > ".join(keys))
        self.keys = tuple(keys)


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

    def feeds(self, source: Place) -> bool:
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


def detected_feeds(places: Mapping[str, tuple[Collection[Place], Collection[Place]]]) -> dict[str, tuple[str, ...]]:
    """Return who feeds each query, from where each writes to and reads from."""
    return {
        reader: tuple(
            writer for writer, (targets, _) in places.items() if any(target.feeds(source) for target in targets for source in sources)
        )
        for reader, (_, sources) in places.items()
    }


def declared_feeds(setting: str, names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return who feeds each query, from the conf.

    Parameters
    ----------
    setting
        Its value.
    names
        Key of each query by its name.

    Raises
    ------
    UnknownFeedError
        The value is malformed or names a query that is not there.
    """
    found: dict[str, tuple[str, ...]] = dict.fromkeys(names.values(), ())
    if setting.strip() == "none":
        return found
    for pair in setting.split(","):
        writer, arrow, reader = (part.strip() for part in pair.partition(">"))
        if not (writer and arrow and reader):
            raise UnknownFeedError(f"{FEEDS} {setting!r} has {pair.strip()!r} in it: write WRITER>READER pairs of query names, or none")
        for name in (writer, reader):
            if name not in names:
                raise UnknownFeedError(
                    f"{FEEDS} {setting!r} names query {name!r}, which is not running; running are {', '.join(sorted(names)) or 'none'}"
                )
        found[names[reader]] = (*found[names[reader]], names[writer])
    return found


def feeds(
    setting: str, names: Mapping[str, str], places: Mapping[str, tuple[Collection[Place], Collection[Place]]]
) -> dict[str, tuple[str, ...]]:
    """Return who feeds each query: as the conf says, else as the plans show."""
    return declared_feeds(setting, names) if setting.strip() else detected_feeds(places)


def check_order(fed_by: Mapping[str, Sequence[str]]) -> None:
    """Make sure that there is an order in which every query comes after those that feed it.

    Raises
    ------
    CycleError
        There is none.
    """
    left = dict(fed_by)
    while left:
        free = [reader for reader, writers in left.items() if not set(writers) & left.keys()]
        if not free:
            raise CycleError(_cycle(left))
        for reader in free:
            del left[reader]


def _cycle(fed_by: Mapping[str, Sequence[str]]) -> list[str]:
    """Return one cycle, in the order in which the data flows, where each query has a writer that is left."""
    path = [next(iter(fed_by))]
    while True:
        writer = next(name for name in fed_by[path[0]] if name in fed_by)
        if writer in path:
            return [writer, *path[: path.index(writer) + 1]]
        path.insert(0, writer)


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
