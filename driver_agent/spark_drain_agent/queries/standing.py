"""How a query stands, and which of the ended ones still matter to a drain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = ["Past", "Standing", "forgotten"]


_MENTIONED = 20


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
    keeps_state
        Whether its plan has state, of a query that has run to its end.
    """

    standing: Standing
    name: str
    location: str | None
    keeps_state: bool = True


def forgotten(queries: Sequence[Past]) -> list[bool]:
    """Return of each query, oldest first, whether it matters no more.

    A query is superseded by a later one on its checkpoint. One that failed or was stopped is so by a later one of its name too, wherever
    that has its checkpoint. One that ran to its end matters no more with a temporary checkpoint, which went with it, or without state,
    unless it is the newest one; with state it does, whatever names others have: what is open in it is to be emitted. Of those that the
    application has stopped only the newest few are worth mentioning.
    """
    return [
        (query.standing in (Standing.FINISHED, Standing.FAILED, Standing.STOPPED) and _is_over(query, queries[index + 1 :]))
        or (query.location is not None and any(later.location == query.location for later in queries[index + 1 :]))
        for index, query in enumerate(queries)
    ]


def _is_over(query: Past, later: Sequence[Past]) -> bool:
    if query.standing is Standing.FINISHED:
        return query.location is None or (not query.keeps_state and bool(later))
    if query.standing is Standing.STOPPED and len(later) >= _MENTIONED:
        return True
    return bool(query.name) and any(other.name == query.name for other in later)
