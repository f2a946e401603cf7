"""How a query stands, and which of the ended ones still matter to a drain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = ["MENTIONED", "Past", "Standing", "forgotten"]

MENTIONED = 100
"""Of the queries that the application has stopped, so many are remembered, and of those with state that ran to their ends."""


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
    digest
        What tells the version of a query without name and checkpoint, of which nothing else is equal when it is started again; else "".
    acknowledged
        Whether the application asked, after its end, to be told no more of such.
    """

    standing: Standing
    name: str
    location: str | None
    keeps_state: bool = True
    digest: str = ""
    acknowledged: bool = False


def forgotten(queries: Sequence[Past]) -> list[bool]:
    """Return of each query, oldest first, whether it matters no more.

    A query is superseded by a later one on its checkpoint. One that failed or was stopped is so by a later one of its name too, wherever
    that has its checkpoint. One that failed with a temporary checkpoint, of which nothing can be drained, matters no more either once
    the application has acknowledged that, or started it again. One that ran to its end matters no more with a temporary checkpoint,
    which went with it, or without state, unless it is the newest one; with state it does, whatever names others have: what is open in
    it is to be emitted. Of those, and of those that the application has stopped, only the newest are remembered.
    """
    return [
        (query.standing in (Standing.FINISHED, Standing.FAILED, Standing.STOPPED) and _is_over(query, queries[index + 1 :]))
        or (query.location is not None and any(later.location == query.location for later in queries[index + 1 :]))
        for index, query in enumerate(queries)
    ]


def _is_over(query: Past, later: Sequence[Past]) -> bool:
    if query.standing is Standing.FINISHED:
        kept = {other.location for other in later if other.standing is Standing.FINISHED and other.keeps_state} - {None}
        return query.location is None or (len(kept) >= MENTIONED if query.keeps_state else bool(later))
    if query.standing is Standing.STOPPED and sum(other.standing is Standing.STOPPED for other in later) >= MENTIONED:
        return True
    if query.standing is Standing.FAILED and query.location is None and _is_settled(query, later):
        return True
    return bool(query.name) and any(other.name == query.name for other in later)


def _is_settled(query: Past, later: Sequence[Past]) -> bool:
    return query.acknowledged or (bool(query.digest) and any((other.name, other.digest) == ("", query.digest) for other in later))
