"""How far the data of a running query's sources goes now, and whether the query has read as far.

Each source counts in its own way. The file source cannot be asked, since asking makes it take what it finds into its next batch; so its
list of seen files is looked at instead.
"""

from __future__ import annotations

from typing import Any, Protocol

from spark_drain_agent.clock import monotonic
from spark_drain_agent.milestones import LOG
from spark_drain_agent.spark_internals.errors import JavaError, in_words
from spark_drain_agent.spark_internals.live_query import LiveQuery
from spark_drain_agent.spark_internals.live_tables import source_name
from spark_drain_agent.spark_internals.offsets import covers, narrowed
from spark_drain_agent.spark_internals.reflection import private_field
from spark_drain_agent.spark_internals.session import SparkInternals
from spark_drain_agent.spark_internals.table_sources import has_end, table_goal

__all__ = ["SourceGoal", "goal_of", "sources_without_end"]

_OFFSETS_BY_LIMIT = frozenset({"KafkaMicroBatchStream"})
_OFFSETS = frozenset({"RateStreamMicroBatchStream", "TextSocketMicroBatchStream", "MemoryStream"})
_MAKES_DATA = frozenset({"RatePerMicroBatchStream"})
"""Sources whose every batch makes its own data: they are never behind."""

_FILES = "FileStreamSource"
_LIST_AGAIN_SECONDS = 10.0


class SourceGoal(Protocol):
    """How far a source is to be read."""

    def reached(self, planned: str | None, committed: str | None) -> bool:
        """Return whether a query with these offsets of its newest planned and committed batches has read as far; ask under the lock."""


def sources_without_end(live: LiveQuery) -> list[str]:
    """Return the sources that cannot say how far their data goes, as ``description (class)``."""
    known = _OFFSETS_BY_LIMIT | _OFFSETS | _MAKES_DATA | {_FILES}
    unknown = [source for source in live.streams if _kind(source) not in known and not has_end(source)]
    return [f"{source_name(source)} ({_kind(source)})" for source in unknown]


def goal_of(internals: SparkInternals, source: Any, planned: str | None) -> SourceGoal | None:
    """Return how far a source's data goes now; call it under the query's lock.

    Parameters
    ----------
    internals
        Access to Spark.
    source
        A source that can say how far its data goes.
    planned
        Its offset in the query's newest batch; without any, None is returned for a source that has a first batch in any case.
    """
    kind = _kind(source)
    if has_end(source):
        return table_goal(internals.jvm, source, planned)
    if kind == _FILES:
        return _FilesGoal(source)
    if kind in _MAKES_DATA:
        return _OffsetGoal(None, None)
    if kind in _OFFSETS:
        latest = source.latestOffset()
        return _OffsetGoal(None if latest is None else str(latest.json()), str(source.initialOffset().json()))
    if planned is None:  # Kafka's first offset can only be asked for by the query's own thread, which makes a batch of an empty topic, too
        return None
    return _PartitionsGoal(internals, source, planned)


def _kind(source: Any) -> str:
    return str(source.getClass().getSimpleName())


class _OffsetGoal:
    def __init__(self, latest: str | None, first: str | None) -> None:
        self._latest, self._first = latest, first

    def reached(self, planned: str | None, committed: str | None) -> bool:  # noqa: ARG002  # the protocol's
        return covers(committed or self._first, self._latest)


class _PartitionsGoal:
    """What every partition held; those that are deleted meanwhile count no more."""

    def __init__(self, internals: SparkInternals, source: Any, planned: str) -> None:
        self._source, self._planned = source, planned
        self._everything = internals.jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.allAvailable()
        self._latest = self._now()
        self._asked_at = monotonic()

    def _now(self) -> str:
        return str(self._source.latestOffset(self._source.deserializeOffset(self._planned), self._everything).json())

    def reached(self, planned: str | None, committed: str | None) -> bool:  # noqa: ARG002  # the protocol's
        if covers(committed, self._latest):
            return True
        if monotonic() - self._asked_at > _LIST_AGAIN_SECONDS:
            self._asked_at = monotonic()
            try:
                self._latest = narrowed(self._latest, self._now())
            except JavaError as error:
                LOG.info("%s does not say how far its data goes: %s", source_name(self._source), in_words(error))
        return covers(committed, self._latest)


class _FilesGoal:
    """All files that are there now were taken into batches, and those batches are committed."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._seen = private_field(source, "seenFiles")
        self._unread = [entry for entry in self._listed() if self._is_new(entry)]
        self._listed_at = monotonic()
        self._last: str | None = None

    def _listed(self) -> list[Any]:
        method = self._source.getClass().getDeclaredMethod("fetchAllFiles", None)
        method.setAccessible(True)
        found = method.invoke(self._source, None)
        return [found.apply(index) for index in range(found.size())]

    def _is_new(self, entry: Any) -> bool:
        # Path first and time last, in the pairs of older Sparks and in the entries of newer ones.
        return bool(self._seen.isNewFile(entry.productElement(0), entry.productElement(entry.productArity() - 1)))

    def reached(self, planned: str | None, committed: str | None) -> bool:
        while self._unread and not self._is_new(self._unread[-1]):
            self._unread.pop()
        if self._unread and monotonic() - self._listed_at > _LIST_AGAIN_SECONDS:
            there = {str(entry.productElement(0).toString()) for entry in self._listed()}  # a file may have been deleted unread
            self._unread = [entry for entry in self._unread if str(entry.productElement(0).toString()) in there]
            self._listed_at = monotonic()
        if self._unread:
            return False
        self._last = self._last or planned
        return covers(committed, self._last)
