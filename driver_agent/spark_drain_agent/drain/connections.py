"""Which of the queries to drain reads what another one writes, and that there is an order to drain them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spark_drain_agent.drain.selection import Selection
from spark_drain_agent.planning.query_graph import QUERY_DEPENDENCIES, CycleError, check_order, dependencies
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.spark_internals.places import Place
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["Connection", "connect"]


@dataclass(frozen=True)
class Connection:
    """How one query to drain hangs together with the others.

    Parameters
    ----------
    writers
        The queries, by key, that are drained before this one because it reads what they write.
    warnings
        What is to know of queries that are not drained with it.
    """

    writers: tuple[str, ...]
    warnings: tuple[str, ...]


def connect(internals: SparkInternals, selection: Selection, keep_waiting: Callable[[], None]) -> dict[str, Connection]:
    """Return how each query to drain, by key, hangs together with the others.

    Parameters
    ----------
    internals, selection
        Access to Spark, and the queries.
    keep_waiting
        Called between two queries; raises to give up.

    Raises
    ------
    CycleError
        There is no order in which they can be drained.
    """
    keys = {item.key: item for item in selection.candidates if item.captured.query_name or item.location}
    names = {item.captured.query_name or item.label: key for key, item in keys.items()}
    labels = {key: name for name, key in names.items()}

    def places(item: TrackedQuery) -> tuple[list[Place], list[Place]]:
        keep_waiting()
        return item.places()

    found = dependencies(internals.conf(QUERY_DEPENDENCIES), names, lambda: {key: places(item) for key, item in keys.items()})
    targets = {target.key for target in selection.targets}
    connections = {target.key: _connection(target, found, labels, targets) for target in selection.targets}
    try:
        check_order({key: connection.writers for key, connection in connections.items()})
    except CycleError as error:
        cycle = " > ".join(repr(labels[key]) for key in error.keys)
        raise CycleError(
            error.keys,
            f"queries depend on each other ({cycle}), so none of them can be drained first: "
            f"cut it with {QUERY_DEPENDENCIES}, or use mode 'Stop'",
        ) from error
    return connections


def _connection(target: TrackedQuery, found: Mapping[str, tuple[str, ...]], labels: Mapping[str, str], targets: set[str]) -> Connection:
    writers = found.get(target.key, ())
    readers = [labels[reader] for reader in found if target.key in found[reader] and reader not in targets]
    others = [labels[writer] for writer in writers if writer not in targets]
    return Connection(
        tuple(writer for writer in writers if writer in targets),
        (
            *(
                f"query {name!r} reads what {target.label} writes, and is not drained with it: it reads the last rows as any others"
                for name in readers
            ),
            *(
                f"{target.label} reads what query {name!r} writes, which is not drained with it: its next version reads on there"
                for name in others
            ),
        ),
    )
