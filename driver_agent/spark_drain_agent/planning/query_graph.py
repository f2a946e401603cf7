"""Which query reads what another one writes, and in what order they are drained. Pure functions over what was observed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from spark_drain_agent.spark_internals.places import Place

__all__ = [
    "QUERY_DEPENDENCIES",
    "CycleError",
    "UnknownDependencyError",
    "check_order",
    "declared_dependencies",
    "dependencies",
    "detected_dependencies",
]

QUERY_DEPENDENCIES = "spark.sparkdrain.queryDependencies"
"""Conf of the application: ``a>b,b>c`` by the queries' names, or ``none``; replaces what is found in the plans."""


class UnknownDependencyError(Exception):
    """The conf cannot be read, or names a query that does not run."""


class CycleError(Exception):
    """Queries depend on each other, so none of them can be drained first.

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


def detected_dependencies(places: Mapping[str, tuple[Collection[Place], Collection[Place]]]) -> dict[str, tuple[str, ...]]:
    """Return the queries that each query depends on, from where each writes to and reads from."""
    return {
        reader: tuple(
            writer for writer, (targets, _) in places.items() if any(target.is_read_as(source) for target in targets for source in sources)
        )
        for reader, (_, sources) in places.items()
    }


def declared_dependencies(setting: str, names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the queries that each query depends on, from the conf.

    Parameters
    ----------
    setting
        Its value.
    names
        Key of each query by its name.

    Raises
    ------
    UnknownDependencyError
        The value is malformed or names a query that is not there.
    """
    found: dict[str, tuple[str, ...]] = dict.fromkeys(names.values(), ())
    if setting.strip() == "none":
        return found
    for pair in setting.split(","):
        writer, arrow, reader = (part.strip() for part in pair.partition(">"))
        if not (writer and arrow and reader) or (">" in reader and reader not in names):
            raise UnknownDependencyError(
                f"{QUERY_DEPENDENCIES} {setting!r} has {pair.strip()!r} in it: write WRITER>READER pairs of query names, or none"
            )
        for name in (writer, reader):
            if name not in names:
                raise UnknownDependencyError(
                    f"{QUERY_DEPENDENCIES} {setting!r} names query {name!r}, which is not running; "
                    f"running are {', '.join(sorted(names)) or 'none'}"
                )
        found[names[reader]] = (*found[names[reader]], names[writer])
    return found


def dependencies(
    setting: str, names: Mapping[str, str], places: Callable[[], Mapping[str, tuple[Collection[Place], Collection[Place]]]]
) -> dict[str, tuple[str, ...]]:
    """Return the queries that each query depends on: as the conf says, else as the plans show, which are then asked."""
    return declared_dependencies(setting, names) if setting.strip() else detected_dependencies(places())


def check_order(depends_on: Mapping[str, Sequence[str]]) -> None:
    """Make sure that there is an order in which every query comes after those that it depends on.

    Raises
    ------
    CycleError
        There is none.
    """
    left = dict(depends_on)
    while left:
        free = [reader for reader, writers in left.items() if not set(writers) & left.keys()]
        if not free:
            raise CycleError(_cycle(left))
        for reader in free:
            del left[reader]


def _cycle(depends_on: Mapping[str, Sequence[str]]) -> list[str]:
    """Return one cycle, in the order in which the data flows, where each query has a writer that is left."""
    path = [next(iter(depends_on))]
    while True:
        writer = next(name for name in depends_on[path[0]] if name in depends_on)
        if writer in path:
            return [writer, *path[: path.index(writer) + 1]]
        path.insert(0, writer)
