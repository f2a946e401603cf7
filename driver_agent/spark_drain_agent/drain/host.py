"""What a drain needs of the agent around it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from spark_drain_store import Channel

from spark_drain_agent.drain.ended import GivenUp
from spark_drain_agent.drain.identity import Identity
from spark_drain_agent.gate import Gate
from spark_drain_agent.queries.registry import QueryRegistry
from spark_drain_agent.queries.tracked import TrackedQuery
from spark_drain_agent.queries.unasked_starts import UnaskedStarts
from spark_drain_agent.spark_internals.session import SparkInternals

__all__ = ["POLL_SECONDS", "DrainHost", "HeldView"]

POLL_SECONDS = 0.1


class HeldView(Protocol):
    """What the application sees of the queries that a drain has ended."""

    def ends(self, queries: Iterable[TrackedQuery], *, keeping_state: bool) -> None:
        """Take note of the queries that a drain ends from now on."""

    def give_up(self, queries: Iterable[TrackedQuery], given_up: GivenUp) -> None:
        """Take note that the drain of these queries was given up."""

    def ended(self, query: TrackedQuery) -> bool:
        """Return whether a drain has had this run of a query to end."""

    def kept_open(self, query: TrackedQuery) -> bool:
        """Return whether a drain has had this run of a query to end, and has left open what is in its state."""

    def given_up(self, query: TrackedQuery) -> bool:
        """Return whether a drain has had this run of a query to end, and was given up before it had brought it to its end."""

    def made_good(self, query: TrackedQuery) -> bool:
        """Return whether a drain has brought this run of a query to its end, whatever its first flush batch failed with."""

    def forget_drained(self) -> None:
        """Let ``awaitAnyTermination()`` wait on for the queries that run beside those that were drained."""


class DrainHost(Protocol):
    """What a drain needs of the agent around it."""

    internals: SparkInternals
    channel: Channel
    identity: Identity
    gate: Gate
    registry: QueryRegistry
    started_unasked: UnaskedStarts

    @property
    def held(self) -> HeldView:
        """What the application sees of the queries that a drain has ended."""
