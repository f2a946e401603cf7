"""How a query stands, and which of the ended ones still matter to a drain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = ["Past", "Standing", "forgotten"]


class Standing(Enum):
    """How a query of the application stands."""

    HELD = "held"
    """A drain keeps it from starting."""
    RUNS = "runs"
    FAILED = "failed"
    FINISHED = "finished"
    """Bounded, and at its end: what is open in its checkpoint can be drained."""
    STOPPED = "stopped"
    """By the application, which so has decided what happens to it."""


@dataclass(frozen=True)
class Past:
    """What tells whether a query still matters.

    Parameters
    ----------
    standing
        How it stands.
    name
        Its name, or "".
    location
        Its checkpoint folder; None for a temporary one.
    """

    standing: Standing
    name: str
    location: str | None


def forgotten(queries: Sequence[Past]) -> list[bool]:
    """Return of each query, oldest first, whether it matters no more.

    A query is superseded by a later one on its checkpoint. One that has ended is so by a later one of its name too, wherever that has
    its checkpoint, and matters no more when it ran to its end with a temporary checkpoint, which went with it.
    """
    return [
        (query.standing in (Standing.FINISHED, Standing.FAILED, Standing.STOPPED) and _is_over(query, queries[index + 1 :]))
        or (query.location is not None and any(later.location == query.location for later in queries[index + 1 :]))
        for index, query in enumerate(queries)
    ]


def _is_over(query: Past, later: Sequence[Past]) -> bool:
    if query.standing is Standing.FINISHED and query.location is None:
        return True
    return bool(query.name) and any(other.name == query.name for other in later)
