"""What one phase of a drain hands to the next."""

from __future__ import annotations

from dataclasses import dataclass

from spark_drain_store import DrainOptions, QueryReport

from spark_drain_agent.drain.committed_query import CommittedQuery
from spark_drain_agent.queries.tracked import TrackedQuery

__all__ = ["Committed", "Finished"]


@dataclass(frozen=True)
class Committed:
    """A drain that stands at its point of no return: nothing is in flight, and it is still wanted.

    Parameters
    ----------
    options
        What was asked for.
    targets
        The queries to finish.
    beside
        Those that run on.
    executors
        Id to host, as registered when the last batch was committed.
    left_alone
        Sentences that name the queries that are left as they are.
    """

    options: DrainOptions
    targets: tuple[CommittedQuery, ...]
    beside: tuple[TrackedQuery, ...]
    executors: dict[str, str]
    left_alone: tuple[str, ...]


@dataclass(frozen=True)
class Finished:
    """A drain whose queries are all at their ends.

    Parameters
    ----------
    options
        What was asked for.
    queries
        What is reported of each query.
    executors
        Id to host of those that are to report.
    left_alone
        Sentences that name the queries that are left as they are.
    """

    options: DrainOptions
    queries: tuple[QueryReport, ...]
    executors: dict[str, str]
    left_alone: tuple[str, ...] = ()
